import { sqliteStore } from '../../../../src/stores/sqlite/sqlite-store.ts'

/**
 * A process of its own on a database file. The first argument says what it does; it answers in lines on its output. `migrate PATH`:
 * opens the store. `reserve PATH NAME COUNT AMOUNT`: so many reservations at once, answers how many are held. `settle PATH COUNT`:
 * ends holds `hold_0`… and answers how many ends were its own. `acknowledge PATH NAME FROM`: reserves indefinitely, and names each
 * hold once it is acknowledged. `secret PATH NAME`: gives 50 accounts their first webhook secret, and answers each that they have.
 * `lock PATH`: waits for the word to write.
 */
const [command, path = '', ...rest] = process.argv.slice(2)
const store = sqliteStore({ path, busyTimeoutMs: 30_000, clock: 'caller' })
const NOW_MS = 1_750_000_000_000

function reserve(holdId: string, amount: bigint) {
  const hold = { holdId, accountId: 'account_1', keyId: 'key_1', amount, expiresAtMs: NOW_MS + 3_600_000 }
  return store.ledger.reserve(hold, NOW_MS)
}

/** Resolves when the parent says so, so that several processes begin together. */
function whenTold(): Promise<void> {
  process.stdout.write('ready\n')
  return new Promise((resolve) => process.stdin.once('data', () => resolve()))
}

async function run(): Promise<void> {
  if (command === 'migrate') {
    await whenTold()
    await store.start()
  } else if (command === 'reserve') {
    const [name, count, amount = '0'] = rest
    await store.start()
    await whenTold()
    const wanted = Array.from({ length: Number(count) }, (_, index) => reserve(`${name}_${index}`, BigInt(amount)))
    const outcomes = await Promise.all(wanted)
    process.stdout.write(`held ${outcomes.filter(({ status }) => status === 'held').length}\n`)
  } else if (command === 'settle') {
    await store.start()
    await whenTold()
    const ends = Array.from({ length: Number(rest[0]) }, (_, index) =>
      store.ledger.settle({ holdId: `hold_${index}`, amount: 1n, description: 'race' }, NOW_MS),
    )
    process.stdout.write(`ended ${(await Promise.all(ends)).filter(({ resolved }) => resolved).length}\n`)
  } else if (command === 'secret') {
    await store.start()
    await whenTold()
    for (let index = 0; index < 50; index++) {
      const secret = await store.webhooks.ensureSecret(`account_${index}`, `whsec_${rest[0]}`)
      process.stdout.write(`account_${index} ${secret}\n`)
    }
  } else if (command === 'acknowledge') {
    const [name, from] = rest
    await store.start()
    for (let round = Number(from); ; round++) {
      const holds = Array.from({ length: 16 }, async (_, index) => {
        const holdId = `${name}_${round}_${index}`
        const { status } = await reserve(holdId, 1n)
        return status === 'held' ? holdId : ''
      })
      process.stdout.write(`${(await Promise.all(holds)).join('\n')}\n`)
    }
  }
  await store.close()
  process.stdin.destroy()
}

await run()
