drop function grid_batch_add(text, bytea, text);
drop table intake_lists;
