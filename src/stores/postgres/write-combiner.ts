// See docs/decisions/0030-postgres-groups.md.

import { createHash } from 'node:crypto'
import type { Reservation, ReserveResult, Settlement } from '../ledger.ts'
import { heldResult } from '../ledger.ts'
import type { Resolution } from '../resolution.ts'
import { answerOf } from '../sql-rows.ts'
import { type ChargeRow, endedInGroup } from './postgres-charge.ts'
import {
  codeOf,
  detailsParameter,
  journalTime,
  type PostgresConnection,
  type PostgresRow,
  TIMEOUT,
  timeParameter,
} from './postgres-connection.ts'
import { taskRequestOf } from './postgres-tasks.ts'
import { draftRequestOf } from './postgres-usage.ts'

/** End of a hold: with a charge, or without one (`amount` undefined). */
export type HoldEnd = Settlement | { readonly holdId: string; readonly amount?: undefined }

interface Waiting<Operation, Result> {
  readonly operation: Operation
  readonly nowMs: number
  readonly resolve: (result: Result | PromiseLike<Result>) => void
  readonly reject: (error: unknown) => void
}

type WaitingReservation = Waiting<Reservation, ReserveResult>
type WaitingEnd = Waiting<HoldEnd, Resolution>

/** Operations of one statement. */
interface Group {
  readonly ends: readonly WaitingEnd[]
  readonly reservations: readonly WaitingReservation[]
}

/** Maximum number of ends and of reservations per group, because a group holds the locks of its accounts while it runs. */
const MAX_GROUP_SIZE = 100
/** After a wait for a lock of another session has timed out, groups skip locked accounts for this time, in milliseconds. */
const SKIP_LOCKED_MS = 1_000
/** Maximum time that a group waits for a lock, in milliseconds, so that one locked account delays the others only a little. */
const MAX_GROUP_LOCK_MS = 500
/** Time that operations wait for a lock that delays no others, in milliseconds. */
const LOCK_MS = 10_000
/** `lock_not_available` (PostgreSQL, appendix A). */
const LOCK_NOT_AVAILABLE = '55P03'
/** Data exceptions, integrity violations and lost transactions (PostgreSQL, appendix A): the group may succeed in parts. */
const REJECTED_GROUP = /^(?:2[23]|40)/
const PARAMETERS = Array.from({ length: 27 }, (_, index) => `$${index + 1}`).join(', ')

/** Settings of {@link WriteCombiner}. */
export interface WriteCombinerOptions {
  readonly clock: 'database' | 'caller'
  /** Maximum duration of a statement in milliseconds. */
  readonly statementTimeoutMs: number
  /** Whether a group of reservations alone waits for the disk, too. */
  readonly durableReservations: boolean
  /** Ends a hold in a statement of its own, with every rule. */
  readonly endAlone: (end: HoldEnd, nowMs: number) => Promise<Resolution>
}

/**
 * Combines reservations and ends of holds of all accounts: those that arrive while a group is in flight share the next statement,
 * and so its round trip and its commit. With two groups in flight each would be half as large, and the second would wait for locks
 * of the first. A single operation is sent immediately. If the server rejects a group, its operations are repeated alone, so that
 * none fails because of another. Those on an account that another session locks wait in a group of their own.
 */
export class WriteCombiner {
  readonly #run: PostgresConnection['runAccepted']
  readonly #statement: string
  /** Each connection prepares the statement once: parsing and planning take about 12 % of a single call (`bench/postgres-store.mjs`). */
  readonly #name: string
  readonly #options: WriteCombinerOptions
  #ends: WaitingEnd[] = []
  #reservations: WaitingReservation[] = []
  #isInFlight = false
  #isScheduled = false
  #skipsLockedUntilMs = 0
  /** Takes the operations on locked accounts, which wait there together in one connection; undefined if this is it. */
  readonly #forLocked: WriteCombiner | undefined

  constructor(connection: PostgresConnection, schema: string, options: WriteCombinerOptions, isForLocked = false) {
    this.#run = connection.runAccepted
    this.#forLocked = isForLocked ? undefined : new WriteCombiner(connection, schema, options, true)
    this.#statement = `SELECT * FROM ${schema}.apply_group(${PARAMETERS})`
    // A connection may serve stores in several schemas.
    this.#name = `signalbox_${createHash('sha256').update(this.#statement).digest('hex').slice(0, 16)}`
    this.#options = options
  }

  /** Places a hold. Claims and tasks get a statement of their own. */
  reserve(operation: Reservation, nowMs: number): Promise<ReserveResult> {
    return new Promise((resolve, reject) => {
      const waiting = { operation, nowMs, resolve, reject }
      if (isDurable(operation)) {
        this.#reserveAlone(waiting)
        return
      }
      this.#reservations.push(waiting)
      this.#schedule()
    })
  }

  /** Ends a hold. */
  end(operation: HoldEnd, nowMs: number): Promise<Resolution> {
    return new Promise((resolve, reject) => {
      this.#ends.push({ operation, nowMs, resolve, reject })
      this.#schedule()
    })
  }

  #schedule(): void {
    if (this.#ends.length + this.#reservations.length === 0) return
    if (this.#isScheduled || this.#isInFlight) return
    this.#isScheduled = true
    queueMicrotask(() => {
      this.#isScheduled = false
      void this.#sendNext()
    })
  }

  async #sendNext(): Promise<void> {
    const ends = takeDistinct(this.#ends)
    const reservations = takeDistinct(this.#reservations)
    // Reservations of an account follow each other.
    reservations.sort((one, other) => compareIds(one.operation.accountId, other.operation.accountId))
    this.#isInFlight = true
    await this.#apply({ ends, reservations })
    this.#isInFlight = false
    this.#schedule()
  }

  async #apply(group: Group): Promise<void> {
    const { ends, reservations } = group
    const skipsLocked = performance.now() < this.#skipsLockedUntilMs
    // A fourth, so that a lock ends a statement before its own time limit does, even after a retry.
    const groupLockMs = Math.min(MAX_GROUP_LOCK_MS, this.#options.statementTimeoutMs / 4)
    try {
      const row = await this.#send(group, skipsLocked, this.#forLocked === undefined ? LOCK_MS : groupLockMs)
      const shortfalls = membersOf<string>(row['shortfalls'])
      const facts = membersOf<ChargeRow>(row['facts'])
      const outcomes = membersOf<PostgresRow>(row['outcomes'])
      const skippedEnds = membersOf<'locked' | 'alone'>(row['skipped_ends'])
      for (const [index, waiting] of ends.entries()) {
        const { operation, nowMs, resolve } = waiting
        const skipped = skippedEnds[index + 1]
        if (skipped === undefined) resolve(endedInGroup(operation, shortfalls[index + 1], facts[index + 1]))
        else if (skipped === 'locked') resolve(this.#forLocked!.end(operation, nowMs))
        else this.#endAlone(waiting)
      }
      for (const [index, { operation, nowMs, resolve }] of reservations.entries()) {
        const outcome = outcomes[index + 1]
        if (outcome?.['status'] === 'locked') resolve(this.#forLocked!.reserve(operation, nowMs))
        else resolve(reserveResultOf(operation, outcome, row))
      }
    } catch (error) {
      if (codeOf(error) === LOCK_NOT_AVAILABLE && this.#forLocked !== undefined && !skipsLocked) {
        this.#skipsLockedUntilMs = performance.now() + SKIP_LOCKED_MS
        await this.#apply(group)
      } else this.#recover(group, error)
    }
  }

  async #send({ ends, reservations }: Group, skipsLocked: boolean, lockMs: number): Promise<PostgresRow> {
    const { clock, durableReservations } = this.#options
    const nowMs = [...ends, ...reservations].reduce((latest, waiting) => Math.max(latest, waiting.nowMs), 0)
    const [row] = await this.#run(
      this.#statement,
      [
        journalTime(clock, nowMs),
        ends.length > 0 || reservations.some(({ operation }) => isDurable(operation)) || durableReservations,
        skipsLocked,
        `${Math.ceil(lockMs)}ms`,
        ...endParameters(ends.map(({ operation }) => operation)),
        ...reservationParameters(
          reservations.map(({ operation }) => operation),
          nowMs,
        ),
      ],
      this.#name,
    )
    return row!
  }

  /**
   * Repeats the operations of a group alone if one of them may be at fault. Otherwise they are rejected, and after a timeout also
   * those that wait, because they would wait for the same again. The outcome is unknown then: the caller may repeat its operation,
   * because each hold has its own id.
   */
  #recover({ ends, reservations }: Group, error: unknown): void {
    const code = String(codeOf(error))
    const isLocked = code === LOCK_NOT_AVAILABLE
    const isRejected = REJECTED_GROUP.test(code) || (isLocked && this.#forLocked !== undefined)
    const isStuck = code === TIMEOUT || (isLocked && this.#forLocked === undefined)
    const isRepeated = isRejected && (isLocked || ends.length + reservations.length > 1)
    for (const waiting of isStuck ? [...ends, ...this.#ends.splice(0)] : ends) {
      // A single one, too: it may be charged without its record.
      if (isRejected) this.#endAlone(waiting)
      else waiting.reject(error)
    }
    for (const waiting of isStuck ? [...reservations, ...this.#reservations.splice(0)] : reservations) {
      if (isRepeated) this.#reserveAlone(waiting)
      else waiting.reject(error)
    }
  }

  #endAlone({ operation, nowMs, resolve }: WaitingEnd): void {
    resolve(this.#options.endAlone(operation, nowMs))
  }

  #reserveAlone(waiting: WaitingReservation): void {
    const { operation, resolve, reject } = waiting
    this.#send({ ends: [], reservations: [waiting] }, false, LOCK_MS).then(
      (row) => resolve(reserveResultOf(operation, membersOf<PostgresRow>(row['outcomes'])[1], row)),
      reject,
    )
  }
}

/** Removes the next operations of a group from those that wait. An operation on a hold of an earlier one stays for the next group. */
function takeDistinct<Item extends Waiting<{ readonly holdId: string }, never>>(waiting: Item[]): Item[] {
  const ids = new Set<string>()
  let count = 0
  while (count < waiting.length && count < MAX_GROUP_SIZE) {
    const { holdId } = waiting[count]!.operation
    if (ids.has(holdId)) break
    ids.add(holdId)
    count++
  }
  return waiting.splice(0, count)
}

/** Whether a reservation must survive a crash of the server: with a claim or a task, which later calls look up. */
function isDurable({ claim, task }: Reservation): boolean {
  return claim !== undefined || task !== undefined
}

function compareIds(one: string, other: string): number {
  if (one === other) return 0
  return one < other ? -1 : 1
}

function membersOf<Member>(column: unknown): Readonly<Record<number, Member>> {
  return column === null ? {} : (JSON.parse(column as string) as Record<number, Member>)
}

/** @param outcome Status and counter; if omitted, the wanted amount is held. @param row Columns of a replayed answer. */
function reserveResultOf(reservation: Reservation, outcome: PostgresRow | undefined, row: PostgresRow): ReserveResult {
  if (outcome === undefined) return heldResult(reservation, reservation.larger?.amount ?? reservation.amount)
  const status = outcome['status'] as ReserveResult['status']
  if (status === 'replay') return { status, answer: answerOf(row) }
  if (status === 'spending_limit') return { status, counter: outcome['counter'] as string }
  if (status === 'held' && outcome['counter'] === 'larger') return { status, isLarger: true }
  return { status }
}

function endParameters(ends: readonly HoldEnd[]): unknown[] {
  const settlements = ends.map((end) => (end.amount === undefined ? undefined : end))
  const records: object[] = []
  return [
    ends.map(({ holdId }) => holdId),
    settlements.map((settlement) => amountParameter(settlement?.amount)),
    settlements.map((settlement) => settlement?.description ?? null),
    settlements.map((settlement) => detailsParameter(settlement?.details)),
    settlements.map((settlement) =>
      settlement?.record === undefined ? null : records.push(draftRequestOf(settlement.record)),
    ),
    JSON.stringify(records),
    settlements.some((settlement) => settlement?.thresholds !== undefined),
  ]
}

function reservationParameters(reservations: readonly Reservation[], nowMs: number): unknown[] {
  const capParameters = (owner: 'account' | 'key'): unknown[] => {
    const caps = reservations.map((reservation) => reservation.caps?.[owner])
    return [caps.map((cap) => amountParameter(cap?.amount)), caps.map((cap) => cap?.period ?? null)]
  }
  const [only] = reservations
  const claim = only?.claim
  return [
    reservations.map(({ holdId }) => holdId),
    reservations.map(({ accountId }) => accountId),
    reservations.map(({ keyId }) => keyId),
    reservations.map(({ amount }) => String(amount)),
    reservations.map(({ amount, requiredFree }) => String(requiredFree ?? amount)),
    reservations.map(({ larger }) => amountParameter(larger?.amount)),
    reservations.map(({ larger }) => amountParameter(larger?.requiredFree)),
    reservations.map(({ expiresAtMs }) => timeParameter(expiresAtMs - nowMs)),
    reservations.map(({ billing }) => billing ?? null),
    ...capParameters('account'),
    ...capParameters('key'),
    claim && [claim.accountId, claim.key, claim.fingerprint],
    claim && timeParameter(claim.expiresAtMs - nowMs),
    only?.task && JSON.stringify(taskRequestOf(only.task)),
  ]
}

function amountParameter(amount: bigint | undefined): string | null {
  return amount === undefined ? null : String(amount)
}
