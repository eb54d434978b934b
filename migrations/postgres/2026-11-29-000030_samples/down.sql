drop table samples;
