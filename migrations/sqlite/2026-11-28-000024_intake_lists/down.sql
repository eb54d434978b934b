drop table intake_lists;
