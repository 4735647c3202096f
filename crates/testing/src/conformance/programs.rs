//! The programs that the cases run.

/// Accounts: deltas, extremes, plain values, and what only the call's place decides.
pub(super) const BANK: &str = "
table accounts { id: int, owner: varchar(20) null, balance: bigint, best: bigint, primary key (id) using hash }
procedure open(id: int, balance: bigint) { insert accounts { id: id, balance: balance, best: balance } }
procedure transfer(src: int, dst: int, amount: bigint) -> bigint {
    require accounts[src].balance >= amount, \"insufficient funds\"
    accounts[src].balance -= amount
    accounts[dst].balance += amount
    return accounts[src].balance
}
procedure add(id: int, amount: bigint) { accounts[id].balance += amount }
procedure raise(id: int, level: bigint) { accounts[id].best = greatest(accounts[id].best, level) }
procedure put(id: int, balance: bigint) { accounts[id].balance = balance }
procedure put_or_null(id: int, balance: bigint null) { accounts[id].balance = balance }
procedure copy_best(src: int, dst: int) { accounts[dst].best = accounts[src].best }
procedure add_and_rename(id: int, amount: bigint, owner: varchar(20)) {
    accounts[id].balance += amount
    accounts[id].owner = owner
}
procedure rename(id: int, owner: varchar(20) null) { accounts[id].owner = owner }
procedure see(id: int) -> (balance: bigint null, best: bigint null) {
    return accounts[id]?.balance, accounts[id]?.best
}
procedure sum_of(ids: list of int) -> bigint {
    var sum: bigint = 0
    for id in ids { sum += accounts[id].balance }
    return sum
}
procedure repeat(id: int, times: bigint, by: list of int) -> bigint {
    var done: bigint = 0
    for n in 1 to times {
        for amount in by {
            done = n
        }
    }
    accounts[id].balance += 1
    return done
}
procedure stamp(id: int) {
    accounts[id].best = (random() * 1000000)::bigint
    accounts[id].owner = now()::text
}
";

/// Calls of which much can wait.
pub(super) const CHOICES: &str = "
table choices { k: int, a: int, b: int, d: int, name: text, tag: varchar(1), primary key (k) }
procedure add(k: int, a: int, b: int, d: int, name: text) {
    insert choices { k: k, a: a, b: b, d: d, name: name, tag: '' }
}
procedure choose(k: int, ks: list of int) -> (r: int, b: int) {
    var chosen: list of int = []
    for x in ks { if choices[x].a > 0 { append chosen (x) } }
    var r: int = 0
    if count(chosen) > 0 {
        r = choices[k].a
        require r > 0, \"nothing\"
    }
    require choices[k].d > 0, \"nothing\"
    choices[k].b = if choices[k].b > 0 then choices[k].d else 0
    return r, choices[k].b
}
procedure tag(k: int) { choices[k].tag = least(choices[k].name, 'b')::varchar(1) }
procedure share(k: int) { choices[k].a = 1000 / (length(greatest('zz', choices[k].name)) - 1)::int }
";

/// Orders and items: ordered keys, secondary and unique indexes, scans.
pub(super) const SHOP: &str = "
table orders {
    shop: int, number: int, customer: int null, state: varchar(10), total: numeric(10, 2),
    primary key (shop, number), index by_customer (customer, number), index by_state (state),
}
table items { id: int, code: varchar(8) null, quantity: int, primary key (id), unique index by_code (code) }
procedure order(shop: int, number: int, customer: int null, state: varchar(10)) {
    insert orders { shop: shop, number: number, customer: customer, state: state, total: 1.50 }
}
procedure move(shop: int, number: int, state: varchar(10)) { orders[shop, number].state = state }
procedure there_and_back(shop: int, number: int, state: varchar(10)) {
    let before = orders[shop, number].state
    orders[shop, number].state = state
    orders[shop, number].state = before
}
procedure replace(shop: int, number: int) {
    let state = orders[shop, number].state
    let customer = orders[shop, number].customer
    delete orders[shop, number]
    insert orders { shop: shop, number: number, customer: customer, state: state, total: 2 }
}
procedure cancel(shop: int, number: int) { delete orders[shop, number] }
procedure numbers(shop: int, low: int null, high: int null, most: bigint null) -> list of int {
    var found: list of int = []
    for order in orders[shop, coalesce(low, -1000) .. coalesce(high, 1000)] limit most { append found (order.number) }
    return found
}
procedure down(shop: int) -> list of int {
    var found: list of int = []
    for order in orders[shop] descending { append found (order.number) }
    return found
}
procedure of_customer(customer: int, above: int) -> list of (shop: int, number: int) {
    var found: list of (shop: int, number: int) = []
    for order in orders by by_customer[customer, above <..] { append found (order.shop, order.number) }
    return found
}
procedure in_state(state: varchar(10)) -> list of int {
    var found: list of int = []
    for order in orders by by_state[state] { append found (order.number) }
    return found
}
procedure next_number(shop: int, most: int) -> int {
    var last: int = 0
    for order in orders[shop] descending limit 1 { last = order.number }
    require last < most, \"the book is full\"
    insert orders { shop: shop, number: last + 1, state: 'new', total: 0 }
    return last + 1
}
procedure number_in_state(state: varchar(10), shop: int) -> bigint {
    var found: list of int = []
    for order in orders by by_state[state] { append found (order.number) }
    insert orders { shop: shop, number: count(found)::int, state: state, total: 0 }
    return count(found)
}
procedure take_first(shop: int) -> int {
    var taken: int = 0
    for order in orders[shop] limit 1 {
        taken = order.number
        delete order
    }
    return taken
}
procedure insert_and_count(shop: int, count: int) -> (before: bigint, after: bigint, in_state: bigint) {
    var found: list of int = []
    for order in orders[shop] { append found (order.number) }
    let before = count(found)
    for number in 1 to count { insert orders { shop: shop, number: number::int, state: 'mine', total: 0 } }
    delete orders[shop, 1]
    orders[shop, 2].state = 'yours'
    found = []
    for order in orders[shop] { append found (order.number) }
    let after = count(found)
    found = []
    for order in orders by by_state['mine'] { append found (order.number) }
    return before, after, count(found)
}
procedure item(id: int, code: varchar(8) null, quantity: int) {
    insert items { id: id, code: code, quantity: quantity }
}
procedure recode(id: int, code: varchar(8) null) { items[id].code = code }
procedure drop_item(id: int) { delete items[id] }
procedure give_code_away(id: int, other: int) {
    let code = items[id].code
    delete items[id]
    insert items { id: id, code: 'none', quantity: 1 }
    insert items { id: other, code: code, quantity: 1 }
}
procedure swap_codes(a: int, b: int) {
    let first = items[a].code
    let second = items[b].code
    items[a].code = null
    items[b].code = first
    items[a].code = second
}
procedure half_done(id: int) {
    insert items { id: id, code: 'half', quantity: 1 }
    items[1].quantity += 5
    delete items[2]
    items[3].code = 'moved'
    require id < 0, \"never\"
}
";

/// Lines that name parts, read with what they name. A key that is an operation is looked up where it stands; one that
/// is a column may be looked up before.
pub(super) const PARTS: &str = "
table lines { shop: int, number: int, part: int null, primary key (shop, number), index of_part (part) }
table parts { id: int, stock: int, note: text null, primary key (id) using hash }
procedure line(shop: int, number: int, part: int null) {
    upsert lines { shop: shop, number: number, part: part }
}
procedure follow(shop: int, number: int, part: int) {
    lines[shop, number].part = if parts[part].stock > 50 then part else part + 1
}
procedure part(id: int, stock: int) { upsert parts { id: id, stock: stock } }
procedure take(id: int, count: int) {
    require count between 1 and 10, \"too many\"
    let left = parts[id].stock - count
    parts[id].stock = if left >= 10 then left else left + 91
}
procedure rebuild(id: int) {
    let stock = parts[id].stock
    delete parts[id]
    insert parts { id: id, stock: stock, note: 'new' }
}
procedure drop_part(id: int) { delete parts[id] }
procedure stocks(shop: int) -> (early: list of (number: int, stock: int null), late: list of (number: int, stock: int null)) {
    var early: list of (number: int, stock: int null) = []
    var late: list of (number: int, stock: int null) = []
    for line in lines[shop] { append early (line.number, parts[line.part]?.stock) }
    for line in lines[shop] { append late (line.number, parts[line.part + 0]?.stock) }
    return early, late
}
procedure plenty(shop: int, least: int, most: bigint) -> (early: list of int, late: list of int) {
    var early: list of int = []
    var late: list of int = []
    for line in lines[shop] where parts[line.part]?.stock >= least descending limit most { append early (line.number) }
    for line in lines[shop] where parts[line.part + 0]?.stock >= least descending limit most { append late (line.number) }
    return early, late
}
procedure newest(shop: int, most: bigint) -> (early: list of (number: int, stock: int null), late: list of (number: int, stock: int null)) {
    var early: list of (number: int, stock: int null) = []
    var late: list of (number: int, stock: int null) = []
    for line in lines[shop] descending limit most { append early (line.number, parts[line.part]?.stock) }
    for line in lines[shop] descending limit most { append late (line.number, parts[line.part + 0]?.stock) }
    return early, late
}
procedure of_parts(least: int) -> (early: list of (number: int, stock: int null), late: list of (number: int, stock: int null)) {
    var early: list of (number: int, stock: int null) = []
    var late: list of (number: int, stock: int null) = []
    for line in lines by of_part[least ..] { append early (line.number, parts[line.part]?.stock) }
    for line in lines by of_part[least ..] { append late (line.number, parts[line.part + 0]?.stock) }
    return early, late
}
procedure around(shop: int, least: int) -> (early: list of int, late: list of int) {
    var early: list of int = []
    var late: list of int = []
    for line in lines[shop] where parts[line.part]?.stock < least {
        for other in lines[shop, .. line.number] {
            if parts[other.part]?.stock < least { append early (other.number) }
        }
    }
    for line in lines[shop] where parts[line.part + 0]?.stock < least {
        for other in lines[shop, .. line.number] {
            if parts[other.part + 0]?.stock < least { append late (other.number) }
        }
    }
    return early, late
}
";
