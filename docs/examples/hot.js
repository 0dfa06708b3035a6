// Adds up in a function that node translates to machine code while it runs.
let sum = 0;
function hot(n) {
    for (let i = 0; i < n; i++) sum = (sum * 31 + i) | 0;
}
for (let k = 0; k < 30; k++) hot(20000);
console.log(sum);
