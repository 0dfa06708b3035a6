create table t(a integer primary key, b text, c real);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 3000)
insert into t select i, hex(i * 7919 % 1009), i / 7.0 from n;
create index i on t(b);
select count(*), sum(a), max(b), round(avg(c), 6) from t where b between '31' and '35';
select substr(b, 1, 2) as k, count(*), total(c) from t group by k order by 2 desc, 1 limit 5;
update t set c = c * 2 where a % 3 = 0;
delete from t where b like '%39';
select count(*), printf('%.4f', sum(c)) from t join (select max(a) as m from t) on a < m;
