import type { MaybePromise } from '../../core/maybe-promise.ts'
import type { UsageField } from '../../core/usage.ts'
import {
  bucketOf,
  type ChargedEnd,
  countsOf,
  LATENCY_BUCKETS,
  type UsageDraft,
  type UsageRecord,
  usageRecord,
} from '../../usage/usage-record.ts'
import {
  assertRowLimit,
  byCharge,
  DAY_MS,
  HOUR_MS,
  type UsageDimension,
  type UsageMismatch,
  type UsageRow,
  type UsageSeriesQuery,
  type UsageStore,
} from '../../usage/usage-store.ts'
import type { LedgerEntry } from '../journal.ts'

/** Limits of stored usage. */
export interface MemoryUsageOptions {
  /** Minimum number of newest records; up to twice as many. Default 10,000. Their sums stay. */
  readonly maxUsageRecords?: number | undefined
  /** Maximum number of sums by day and by hour; the oldest are dropped first. Default 100,000 of each. */
  readonly maxUsageSums?: number | undefined
}

/** Returns the journal of an account. */
type EntriesOf = (accountId: string) => MaybePromise<readonly LedgerEntry[]>

/** Records and sums in this process. The ledger of the same driver adds its own records. */
export class MemoryUsage implements UsageStore {
  readonly #maxRecords: number
  /** Calls, oldest first. */
  #calls: StoredCall[] = []
  /** Number of calls, from the front, that are in the sums. */
  #counted = 0
  #lastNumber = 0
  readonly #hours: SumTable
  readonly #days: SumTable
  readonly #entriesOf: EntriesOf

  constructor(options: MemoryUsageOptions, entriesOf: EntriesOf) {
    this.#maxRecords = options.maxUsageRecords ?? 10_000
    const maxSums = options.maxUsageSums ?? 100_000
    this.#hours = new SumTable(HOUR_MS, maxSums)
    this.#days = new SumTable(DAY_MS, maxSums)
    this.#entriesOf = entriesOf
  }

  add(draft: UsageDraft, { endedAtMs, dueNanoDollars, chargedNanoDollars }: ChargedEnd): void {
    this.#lastNumber += 1
    const number = this.#lastNumber
    this.#calls.push({ number, draft, endedAtMs: Math.floor(endedAtMs), dueNanoDollars, chargedNanoDollars })
    if (this.#calls.length < this.#maxRecords * 2) return
    // In large steps, so that the cost of a record does not depend on the number of records.
    this.rollUp(Number.POSITIVE_INFINITY, 0)
    this.#drop(this.#maxRecords)
  }

  write(records: readonly UsageRecord[]): void {
    for (const record of records) this.add(record, record)
  }

  rollUp(limit: number, nowMs: number): { added: number; asOfMs: number } {
    const end = Math.min(this.#calls.length, this.#counted + limit)
    const added = end - this.#counted
    for (const call of this.#calls.slice(this.#counted, end)) {
      this.#hours.add(call)
      this.#days.add(call)
    }
    this.#counted = end
    return { added, asOfMs: this.#calls[end]?.endedAtMs ?? nowMs }
  }

  series(query: UsageSeriesQuery): readonly UsageRow[] {
    const { source, fromMs, untilMs, step, groupBy, filter, limit, top } = query
    const withLatency = source === 'hours' && query.withLatency === true
    const stepMs = step === 'hour' ? HOUR_MS : DAY_MS
    const wanted = Object.entries(filter).filter(([, value]) => value !== undefined) as [UsageDimension, string][]
    const groups = new Map<string, Group>()
    for (const sums of this.#sumsOf(query)) {
      if (sums.atMs < fromMs || sums.atMs >= untilMs) continue
      if (wanted.some(([dimension, value]) => sums.place[dimension] !== value)) continue
      const atMs = step === undefined ? undefined : Math.floor(sums.atMs / stepMs) * stepMs
      const values = groupBy.map((dimension) => sums.place[dimension])
      const name = JSON.stringify([atMs, ...values])
      const group = groups.get(name) ?? { atMs, values, sums: { ...sums, ...ZERO, usage: {}, latency: noLatency() } }
      if (group.sums.requests === 0) groups.set(name, group)
      merge(group.sums, sums)
    }
    if (top === undefined) assertRowLimit(groups.size, limit)
    const sorted = [...groups.values()].sort(byPlace)
    const wantedGroups =
      top === undefined ? sorted : sorted.sort((one, other) => byCharge(one.sums, other.sums)).slice(0, top)
    return wantedGroups.map(({ atMs, values, sums }) => ({
      ...(atMs === undefined ? {} : { atMs }),
      ...Object.fromEntries(groupBy.map((dimension, index) => [dimension, values[index]!])),
      ...(withLatency ? { latency: sums.latency } : {}),
      requests: sums.requests,
      failed: sums.failed,
      abandoned: sums.abandoned,
      estimated: sums.estimated,
      usage: sums.usage,
      durationMs: sums.durationMs,
      dueNanoDollars: sums.dueNanoDollars,
      chargedNanoDollars: sums.chargedNanoDollars,
    }))
  }

  #sumsOf({ source, groupBy, filter, fromMs, untilMs }: UsageSeriesQuery): Iterable<Sums> {
    if (source !== 'records') return (source === 'hours' ? this.#hours : this.#days).values()
    const isByTag = groupBy.includes('tag') || filter.tag !== undefined
    return this.#calls
      .filter(({ endedAtMs }) => endedAtMs >= fromMs && endedAtMs < untilMs)
      .flatMap((call) => {
        const { tags } = call.draft
        return (isByTag && tags.length > 0 ? tags : ['']).map((tag) => sumsOf(call, tag))
      })
  }

  records({ accountId, fromMs, untilMs, after, limit }: Parameters<UsageStore['records']>[0]) {
    const found = this.#calls
      .filter(
        (call) =>
          (accountId === undefined || call.draft.accountId === accountId) &&
          call.endedAtMs >= fromMs &&
          call.endedAtMs < untilMs &&
          (after === undefined || isBefore(call, after)),
      )
      .sort((one, other) => other.endedAtMs - one.endedAtMs || other.number - one.number)
    const page = found.slice(0, limit)
    const last = found.length > limit ? page.at(-1) : undefined
    return {
      records: page.map((call) => usageRecord(call.draft, call)),
      end: last && { endedAtMs: last.endedAtMs, number: BigInt(last.number) },
    }
  }

  async verify({ fromMs, untilMs }: { readonly fromMs: number; readonly untilMs: number }) {
    const isIn = (atMs: number): boolean => atMs >= fromMs && atMs < untilMs
    const accounts = new Map<string, { records: bigint; days: bigint }>()
    const sumsOfAccount = (accountId: string) => {
      const known = accounts.get(accountId) ?? { records: 0n, days: 0n }
      accounts.set(accountId, known)
      return known
    }
    for (const { draft, endedAtMs, chargedNanoDollars } of this.#calls)
      if (isIn(endedAtMs)) sumsOfAccount(draft.accountId).records += chargedNanoDollars
    for (const { atMs, place, chargedNanoDollars } of this.#days.values())
      if (isIn(atMs)) sumsOfAccount(place.account).days += chargedNanoDollars
    const mismatches: UsageMismatch[] = []
    for (const [accountId, { records, days }] of [...accounts].sort(([one], [other]) => (one < other ? -1 : 1))) {
      let journal = 0n
      for (const { kind, createdAtMs, amount } of await this.#entriesOf(accountId))
        if (kind === 'charge' && isIn(createdAtMs)) journal -= amount
      if (records !== days || records !== journal) mismatches.push({ accountId, records, days, journal })
    }
    return mismatches
  }

  rebuild({ fromMs, untilMs }: { readonly fromMs: number; readonly untilMs: number }): void {
    for (const table of [this.#hours, this.#days]) {
      for (const [name, { atMs }] of table) if (atMs >= fromMs && atMs < untilMs) table.delete(name)
      for (const call of this.#calls.slice(0, this.#counted))
        if (call.endedAtMs >= fromMs && call.endedAtMs < untilMs) table.add(call)
    }
  }

  forget({ recordsUntilMs, hoursUntilMs, daysUntilMs, limit }: Parameters<UsageStore['forget']>[0]): number {
    let count = 0
    if (recordsUntilMs !== undefined) {
      const counted = this.#calls.slice(0, this.#counted)
      const young = counted.filter(({ endedAtMs }) => endedAtMs >= recordsUntilMs || ++count > limit)
      count = counted.length - young.length
      this.#calls = [...young, ...this.#calls.slice(this.#counted)]
      this.#counted = young.length
    }
    for (const [table, untilMs] of [
      [this.#hours, hoursUntilMs],
      [this.#days, daysUntilMs],
    ] as const) {
      if (untilMs === undefined) continue
      const { lengthMs } = table
      let left = limit
      for (const [name, { atMs }] of table) {
        if (left === 0 || atMs >= Math.floor(untilMs / lengthMs) * lengthMs) continue
        table.delete(name)
        left -= 1
        count += 1
      }
    }
    return count
  }

  #drop(kept: number): void {
    const dropped = this.#calls.length - kept
    this.#calls = this.#calls.slice(dropped)
    this.#counted -= dropped
  }
}

/** Two parts of a record. The record is created only when it is read, which is rare. */
interface StoredCall extends ChargedEnd {
  readonly number: number
  readonly draft: UsageDraft
}

/** Sums of one time and one combination of dimensions. */
interface Sums {
  readonly atMs: number
  readonly name: string
  readonly place: Readonly<Record<UsageDimension, string>>
  requests: number
  failed: number
  abandoned: number
  estimated: number
  usage: { -readonly [Field in UsageField]?: number }
  durationMs: number
  readonly latency: { readonly duration: number[]; readonly firstByte: number[] }
  dueNanoDollars: bigint
  chargedNanoDollars: bigint
}

interface Group {
  readonly atMs: number | undefined
  readonly values: readonly string[]
  readonly sums: Sums
}

const ZERO = {
  ...{ requests: 0, failed: 0, abandoned: 0, estimated: 0, durationMs: 0 },
  ...{ dueNanoDollars: 0n, chargedNanoDollars: 0n },
}

/** Sums of one length by name of their place, oldest first. Sums by hour cover all accounts together, and only they count latency. */
class SumTable extends Map<string, Sums> {
  readonly lengthMs: number
  readonly #maxSums: number
  /** Sums of the last record, because the next one often has the same place. */
  #last: Sums | undefined

  constructor(lengthMs: number, maxSums: number) {
    super()
    this.lengthMs = lengthMs
    this.#maxSums = maxSums
  }

  add(call: StoredCall): void {
    const sums = this.#sumsFor(call)
    addCall(sums, call)
    if (this.lengthMs === HOUR_MS) {
      countIn(sums.latency.duration, call.draft.durationMs)
      countIn(sums.latency.firstByte, call.draft.firstByteMs)
    }
  }

  #sumsFor({ endedAtMs, draft: { accountId, keyId, model, endpoint, vendor = '' } }: StoredCall): Sums {
    const atMs = Math.floor(endedAtMs / this.lengthMs) * this.lengthMs
    const isByAccount = this.lengthMs === DAY_MS
    const account = isByAccount ? accountId : ''
    const key = isByAccount ? keyId : ''
    const last = this.#last
    if (last !== undefined && last.atMs === atMs && this.get(last.name) === last) {
      const { place } = last
      const isOfModel = place.model === model && place.endpoint === endpoint && place.vendor === vendor
      if (isOfModel && place.account === account && place.key === key) return last
    }
    const name = JSON.stringify([atMs, account, key, model, endpoint, vendor])
    const known = this.get(name)
    const place = { account, key, model, endpoint, vendor, endUser: '', tag: '' }
    const sums = known ?? { atMs, name, place, ...ZERO, usage: {}, latency: noLatency() }
    this.#last = sums
    if (known === undefined) this.#keep(sums)
    return sums
  }

  #keep(sums: Sums): void {
    this.set(sums.name, sums)
    if (this.size <= this.#maxSums) return
    const [oldest] = this.keys()
    if (oldest !== undefined) this.delete(oldest)
  }
}

/** Returns the sums of one call. */
function sumsOf(call: StoredCall, tag: string): Sums {
  const { accountId: account, keyId: key, model, endpoint, vendor = '', endUser = '' } = call.draft
  const place = { account, key, model, endpoint, vendor, endUser, tag }
  const sums = { atMs: call.endedAtMs, name: '', place, ...ZERO, usage: {}, latency: noLatency() }
  addCall(sums, call)
  return sums
}

function addCall(sums: Sums, { draft, dueNanoDollars, chargedNanoDollars }: StoredCall): void {
  sums.requests += 1
  if (draft.ending === 'failed') sums.failed += 1
  if (draft.ending === 'abandoned') sums.abandoned += 1
  if (draft.isEstimated) sums.estimated += 1
  sums.durationMs += Math.round(draft.durationMs)
  sums.dueNanoDollars += dueNanoDollars
  sums.chargedNanoDollars += chargedNanoDollars
  const counts = countsOf(draft.usage)
  for (const field in counts) {
    const units = counts[field as UsageField] ?? 0
    if (units > 0) sums.usage[field as UsageField] = (sums.usage[field as UsageField] ?? 0) + units
  }
}

function noLatency(): Sums['latency'] {
  return { duration: new Array<number>(LATENCY_BUCKETS).fill(0), firstByte: new Array<number>(LATENCY_BUCKETS).fill(0) }
}

function countIn(counts: number[], valueMs: number | undefined): void {
  if (valueMs === undefined) return
  const bucket = bucketOf(Math.round(valueMs))
  counts[bucket] = counts[bucket]! + 1
}

function addCounts(sums: number[], added: readonly number[]): void {
  for (const [index, count] of added.entries()) sums[index] = sums[index]! + count
}

function merge(sums: Sums, added: Sums): void {
  sums.requests += added.requests
  sums.failed += added.failed
  sums.abandoned += added.abandoned
  sums.estimated += added.estimated
  sums.durationMs += added.durationMs
  addCounts(sums.latency.duration, added.latency.duration)
  addCounts(sums.latency.firstByte, added.latency.firstByte)
  sums.dueNanoDollars += added.dueNanoDollars
  sums.chargedNanoDollars += added.chargedNanoDollars
  for (const [field, units] of Object.entries(added.usage) as [UsageField, number][])
    sums.usage[field] = (sums.usage[field] ?? 0) + units
}

function byPlace(one: Group, other: Group): number {
  if (one.atMs !== other.atMs) return (one.atMs ?? 0) - (other.atMs ?? 0)
  for (const [index, value] of one.values.entries())
    if (value !== other.values[index]) return value < other.values[index]! ? -1 : 1
  return 0
}

function isBefore(
  one: { readonly endedAtMs: number; readonly number: number },
  other: { readonly endedAtMs: number; readonly number: bigint },
): boolean {
  if (one.endedAtMs !== other.endedAtMs) return one.endedAtMs < other.endedAtMs
  return one.number < other.number
}
