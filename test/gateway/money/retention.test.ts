import { afterEach, describe, expect, it } from 'vitest'
import type { GatewayOptions } from '../../../src/gateway/options.ts'
import type { GatewayStore } from '../../../src/stores/gateway-store.ts'
import { memoryStore } from '../../../src/stores/memory/memory-store.ts'
import { sqliteStore } from '../../../src/stores/sqlite/sqlite-store.ts'
import { exampleDraft } from '../../../src/testing/contracts/contract-runner.ts'
import { fakeClock } from '../../../src/testing/index.ts'
import { usageRecord } from '../../../src/usage/usage-record.ts'
import { DAY_MS, type UsageRetention } from '../../../src/usage/usage-store.ts'
import { temporaryPaths } from '../../stores/sqlite/support/temporary-folder.ts'
import { chatBody, type StartedGateway, startGateway } from '../../support/start-gateway.ts'

const CHAT = '/v1/chat/completions'
const NOON_MS = Date.UTC(2026, 10, 20, 12)

const newPath = temporaryPaths()
const running: StartedGateway[] = []

afterEach(async () => {
  for (const started of running.splice(0)) await started.close()
})

/** A gateway on a store, and what it deletes from it. */
async function begin(store: GatewayStore, options: Partial<GatewayOptions> = {}) {
  const clock = fakeClock({ startMs: NOON_MS })
  const usage = store.usage!
  const asked: UsageRetention[] = []
  let wake: () => void = () => undefined
  const started = await startGateway({
    clock,
    ...options,
    store: {
      ...store,
      usage: {
        write: (records) => usage.write(records),
        rollUp: (limit, nowMs) => usage.rollUp(limit, nowMs),
        series: (query) => usage.series(query),
        records: (query) => usage.records(query),
        verify: (range) => usage.verify(range),
        rebuild: (range) => usage.rebuild(range),
        async forget(retention) {
          const count = await usage.forget(retention)
          asked.push(retention)
          wake()
          return count
        },
      },
    },
  })
  running.push(started)
  return {
    ...started,
    /** Serves a chat, and returns the days that the deletion after it keeps. */
    async keptDays() {
      const before = asked.length
      const deleted = new Promise<void>((resolve) => {
        wake = resolve
      })
      await (await started.post(CHAT, chatBody('chat-relayed', 'hello'))).text()
      await started.gateway.usage.records()
      clock.advance(10 * 60_000)
      await deleted
      const { recordsUntilMs, hoursUntilMs, daysUntilMs } = asked[before]!
      const daysOf = (untilMs: number | undefined) =>
        untilMs === undefined ? Number.POSITIVE_INFINITY : (clock.now() - untilMs) / DAY_MS
      return { recordDays: daysOf(recordsUntilMs), hourDays: daysOf(hoursUntilMs), dayDays: daysOf(daysUntilMs) }
    },
    warnings: () =>
      started.gateway
        .warnings()
        .filter(({ code }) => code === 'retention-changed')
        .map(({ message }) => message),
  }
}

const retention = (days: { recordDays?: number; hourDays?: number; dayDays?: number }) => ({
  usage: { retention: days },
})

describe('retention of usage on one SQLite file', () => {
  it('is that of the process that names it, also in a process that names none', async () => {
    const path = newPath()
    const store = sqliteStore({ path, clock: 'caller' })
    const naming = await begin(store, retention({ recordDays: 400, hourDays: Number.POSITIVE_INFINITY }))
    const old = { endedAtMs: NOON_MS - 100 * DAY_MS, dueNanoDollars: 0n, chargedNanoDollars: 0n }
    await store.usage?.write([usageRecord(exampleDraft({ id: 'request_old' }), old)])
    const other = await begin(sqliteStore({ path, clock: 'caller' }))

    const kept = await other.keptDays()

    expect(kept).toEqual({ recordDays: 400, hourDays: Number.POSITIVE_INFINITY, dayDays: Number.POSITIVE_INFINITY })
    const { records } = await naming.gateway.usage.records({ from: NOON_MS - 200 * DAY_MS })
    expect(records.map(({ id }) => id)).toContain('request_old')
    expect([naming.warnings(), other.warnings()]).toEqual([[], []])
  })

  it('is the default as long as no process names one', async () => {
    const alone = await begin(sqliteStore({ path: newPath(), clock: 'caller' }))

    expect(await alone.keptDays()).toEqual({ recordDays: 30, hourDays: 400, dayDays: Number.POSITIVE_INFINITY })
  })

  it('stays in the store after the process that named it has ended', async () => {
    const path = newPath()
    const naming = await begin(sqliteStore({ path, clock: 'caller' }), retention({ recordDays: 90 }))
    await naming.close()
    running.splice(0)
    const other = await begin(sqliteStore({ path, clock: 'caller' }))

    expect(await other.keptDays()).toMatchObject({ recordDays: 90, hourDays: 400 })
  })

  it('is the value named last if processes name different ones, and each warns once with both values', async () => {
    const path = newPath()
    const first = await begin(sqliteStore({ path, clock: 'caller' }), retention({ recordDays: 400, hourDays: 500 }))
    const second = await begin(sqliteStore({ path, clock: 'caller' }), retention({ recordDays: 60 }))

    expect(await first.keptDays()).toMatchObject({ recordDays: 60, hourDays: 500 })
    expect(await first.keptDays()).toMatchObject({ recordDays: 60, hourDays: 500 })
    expect(await second.keptDays()).toMatchObject({ recordDays: 60, hourDays: 500 })
    expect(first.warnings()).toEqual([
      'usage.retention.recordDays is 400 in this process and 60 in the store. 60 applies to all processes of the store. Set the same value in all of them.',
    ])
    expect(second.warnings()).toEqual([
      'usage.retention.recordDays is 60 in this process and was 400 in the store. 60 applies to all processes of the store from now on.',
    ])
  })

  it('decides which days can be verified and rebuilt', async () => {
    const path = newPath()
    await begin(sqliteStore({ path, clock: 'caller' }), retention({ recordDays: 400 }))
    const other = await begin(sqliteStore({ path, clock: 'caller' }))
    const days = { from: NOON_MS - 100 * DAY_MS, to: NOON_MS - 99 * DAY_MS }

    expect(await other.gateway.usage.verify(days)).toEqual([])
    await other.gateway.usage.rebuild(days)
    await expect(
      other.gateway.usage.verify({ from: NOON_MS - 500 * DAY_MS, to: NOON_MS - 499 * DAY_MS }),
    ).rejects.toThrow('records of earlier days are not kept')
  })
})

describe('retention of ended tasks on one store', () => {
  it('is that of the process that names it, also in a process that names none', async () => {
    const store = memoryStore()
    await begin(store, { taskRetentionDays: 365 })
    const clock = fakeClock({ startMs: NOON_MS })
    let purged: (changedUntilMs: number) => void = () => undefined
    const purging = new Promise<number>((resolve) => {
      purged = resolve
    })
    const purge: typeof store.tasks.purge = (query) => {
      purged(query.changedUntilMs)
      return store.tasks.purge(query)
    }
    running.push(await startGateway({ clock, store: { ...store, tasks: { ...store.tasks, purge } } }))

    // The first purge is at the start.
    expect((clock.now() - (await purging)) / DAY_MS).toBe(365)
  })

  it('uses the own option if the store keeps no settings', async () => {
    const { settings: _, ...rest } = memoryStore()
    const alone = await begin(rest, retention({ recordDays: 7 }))

    expect(await alone.keptDays()).toMatchObject({ recordDays: 7, hourDays: 400 })
  })
})
