-- Inserts, an index, aggregation, a join and a sort, in memory.
create table t(a integer primary key, b text, c real, d integer);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 200000)
insert into t select i, hex(i * 7919 % 100003), i / 7.0, i * 31 % 1009 from n;
create index by_b on t(b);
select count(*), sum(a), max(b) from t where b between '31' and '35';
select substr(b, 1, 3) as k, count(*) as n, total(c) from t group by k order by n desc, k limit 5;
select count(*) from t x join t y on x.d = y.a where y.c > 20;
select sum(length(b || d)) from (select * from t order by c * (d % 7), b);
