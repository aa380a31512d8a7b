"""What the engines were asked, said and did, in the order in which it happened."""

from stories import week10, week11, week12, week13

STORIES = (*week10.STORIES, *week11.STORIES, *week12.STORIES, *week13.STORIES)
