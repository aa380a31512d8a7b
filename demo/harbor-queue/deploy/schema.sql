-- Run by the operators on a new host, before the first worker starts.
create table if not exists jobs (
    id text primary key,
    tenant text not null,
    body text not null,
    due text not null,
    attempt integer not null default 0,
    finished text
);
pragma user_version = 7;
