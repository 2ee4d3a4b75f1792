import type { GatewayEvent } from '../core/events.ts'
import { isPending, type MaybePromise } from '../core/maybe-promise.ts'
import { formatDollars } from '../core/money.ts'
import { addUsage, type Usage, withHookUnits } from '../core/usage.ts'
import type { IdempotencyClaim, StoredAnswer } from '../stores/idempotency-store.ts'
import type { Resolution } from '../stores/resolution.ts'
import { type UsageDraft, usageRecord } from '../usage/usage-record.ts'
import { release } from './admit.ts'
import type { CallObservation } from './call-observation.ts'
import type { Reserved } from './call-record.ts'
import { completeKey } from './idempotency-key.ts'
import { emit, emitTo, type PipelineContext, reportFault } from './pipeline-context.ts'
import { chargeFor } from './pricing.ts'
import { settledUsage } from './settled-usage.ts'
import type { GiveUpReason, WaitingSettlement } from './settlement-retries.ts'
import { emitCrossings } from './spending-events.ts'
import { emitUnbilledEnding, emitUnbilledUsage } from './unbilled-usage.ts'
import { attributionOf, type EndedCall, usageDraft } from './usage-draft.ts'
import type { CallEnding } from './vendor-response.ts'

/** What settling needs to know of a call that is over. */
export interface SettlementInput extends EndedCall {
  /** Kept under the caller's Idempotency-Key when the call was charged, or completed with billing off. */
  readonly answer: StoredAnswer | undefined
  /** Set where the gateway answered by itself: from the cache, or by what a hook said. */
  readonly own?: OwnAnswer | undefined
}

/** An answer that no vendor was asked for. */
export interface OwnAnswer {
  /** Stands in the journal where a vendor's id stands otherwise. */
  readonly source: 'cache' | 'hook'
  /** From the cache: what the call used that made it. */
  readonly cachedUsage: Usage | undefined
  /** What is charged for giving it; undefined: what is charged for the call that failed before. */
  readonly nanoDollars: bigint | undefined
}

/** A call that is over, with what it used and what is recorded of it. */
interface SettledCall {
  readonly input: SettlementInput
  /** What is charged for, of all calls of the request; undefined: nothing is. */
  readonly usage: Usage | undefined
  /** What is charged, nano-dollars; undefined: nothing is, and a hold is voided. */
  readonly amount: bigint | undefined
  /** Undefined: calls are not recorded. */
  readonly record: UsageDraft | undefined
}

/** What was charged. */
export interface SettlementResult {
  /** Nano-dollars; undefined when billing is off, or when the store could not be told yet. */
  readonly costNanoDollars: bigint | undefined
  /** What the call costs: more than was charged where the balance lacked it or the store could not be told. 0: nothing. */
  readonly dueNanoDollars: bigint
  readonly usage: Usage | undefined
}

/**
 * Ends what `reserve` and `admit` began: the hold is charged or voided, the caller's lease and unused tokens go back, and
 * the host is told. The one place for whole answers, streams and failures alike. Never throws: an answer that a vendor has
 * given is not withheld because a store is down: the settlement is tried again until the hold has expired, and the host gets
 * an `internal-error` event; and `settlement-given-up` when it can be made no more.
 */
export function settle(
  context: PipelineContext,
  reserved: Reserved,
  input: SettlementInput,
): MaybePromise<SettlementResult> {
  const lastUsage = settledUsage(context, reserved, input)
  if (lastUsage?.outputTokens !== undefined && input.own === undefined) noteSpeed(context, reserved, input, lastUsage)
  const used = reserved.earlier?.isCharged === true ? addUsage(reserved.earlier.usage, lastUsage ?? {}) : lastUsage
  const isCharged = used !== undefined || input.own?.nanoDollars !== undefined
  const usage = isCharged && reserved.hookUnits > 0 ? withHookUnits(used ?? {}, reserved.hookUnits) : used
  const record = context.usage && usageDraft(context, reserved, input, usage)
  const call: SettledCall = { input, usage, amount: amountOf(reserved, input, lastUsage), record }
  let resolution: MaybePromise<Resolution | undefined>
  try {
    resolution =
      reserved.observation === undefined
        ? resolveHold(context, reserved, call)
        : resolveObserved(context, reserved, call, reserved.observation)
  } catch (error) {
    return unresolved(context, reserved, call, error)
  }
  return isPending(resolution)
    ? resolvedLater(context, reserved, call, resolution)
    : resolved(context, reserved, call, resolution)
}

/** Notes how fast a model has written an answer that its vendor reported. */
function noteSpeed(
  { tokenSizes, clock }: PipelineContext,
  { startedAtMs, endpoint, body }: Reserved,
  { ending, candidate }: SettlementInput,
  { outputTokens = 0 }: Usage,
): void {
  if (candidate === undefined || ending.kind !== 'completed' || ending.usage === undefined) return
  const tokens = outputTokens / (endpoint.answers?.(body) ?? 1)
  tokenSizes.noteSpeed(candidate.model.id, tokens, clock.now() - startedAtMs)
}

// Apart from its caller: a function that may make closures allocates for them in every call.
function resolveObserved(
  context: PipelineContext,
  reserved: Reserved,
  call: SettledCall,
  observation: CallObservation,
): MaybePromise<Resolution | undefined> {
  return observation.timed('settle', () => resolveHold(context, reserved, call))
}

function resolvedLater(
  context: PipelineContext,
  reserved: Reserved,
  call: SettledCall,
  resolution: PromiseLike<Resolution | undefined>,
): PromiseLike<SettlementResult> {
  return resolution.then(
    (told) => resolved(context, reserved, call, told),
    (error) => unresolved(context, reserved, call, error),
  )
}

function resolved(
  context: PipelineContext,
  reserved: Reserved,
  call: SettledCall,
  resolution: Resolution | undefined,
): MaybePromise<SettlementResult> {
  noteResolution(context, reserved, call, resolution)
  return releaseSettled(context, reserved, call, {
    usage: call.usage,
    costNanoDollars: resolution?.charged,
    dueNanoDollars: resolution?.resolved === true ? totalOf(resolution) : dueOf(call),
  })
}

/** What a call cost. A sum is another bigint even where nothing is added, as for nearly every call. */
function totalOf({ charged, shortfall }: Resolution): bigint {
  return shortfall === 0n ? charged : charged + shortfall
}

function unresolved(
  context: PipelineContext,
  reserved: Reserved,
  call: SettledCall,
  error: unknown,
): MaybePromise<SettlementResult> {
  reportFault(context, reserved.requestId, 'settle', error)
  resolveLater(context, reserved, call, error)
  const result = { usage: call.usage, costNanoDollars: undefined, dueNanoDollars: dueOf(call) }
  return releaseSettled(context, reserved, call, result)
}

/** The hold has ended, or will: frees the rest, and tells the host. */
function releaseSettled(
  context: PipelineContext,
  reserved: Reserved,
  call: SettledCall,
  result: SettlementResult,
): MaybePromise<SettlementResult> {
  const { input, usage, record } = call
  if (record !== undefined) noteRecord(context, call, record)
  const { unbilled } = input.ending
  if (input.candidate !== undefined) emitUnbilledEnding(context, reserved, input.candidate, input.ending)
  const { earlier } = reserved
  if (earlier?.isCharged === false)
    emitUnbilledUsage(context, reserved, earlier.candidate, { usage: earlier.usage, isEstimated: false })
  const used = usage ?? (earlier === undefined ? unbilled?.usage : addUsage(earlier.usage, unbilled?.usage ?? {}))
  const released = release(context, reserved, (used?.inputTokens ?? 0) + (used?.outputTokens ?? 0))
  return isPending(released)
    ? released.then(() => ended(context, reserved, input, result))
    : ended(context, reserved, input, result)
}

function ended(
  context: PipelineContext,
  reserved: Reserved,
  input: SettlementInput,
  result: SettlementResult,
): SettlementResult {
  if (context.onEvent !== undefined) emitEnded(context, reserved, input, result)
  reserved.observation?.settled(reserved, {
    ending: input.ending,
    candidate: input.candidate,
    status: input.status,
    usage: result.usage,
    costNanoDollars: result.costNanoDollars,
    firstByteMs: input.firstByteMs,
  })
  return result
}

/** What cannot be made later either is left to the sweep, which frees the hold: the call goes uncharged. */
function resolveLater(context: PipelineContext, reserved: Reserved, call: SettledCall, error: unknown): void {
  const run = async (): Promise<void> => {
    const resolution = await resolveHold(context, reserved, call)
    noteResolution(context, reserved, call, resolution)
    if (resolution?.earlier !== undefined) emitCharged(context, unsettled(reserved, call), resolution.earlier)
  }
  const untilMs = context.clock.now() + context.holdTtlMs
  settleLater(context, unsettled(reserved, call), { run, untilMs, error })
}

/**
 * Tells of a charge that the balance did not cover, and of one that cannot be made any more. A hold that was settled before
 * was settled by an earlier try whose acknowledgement was lost, which does no harm; what is to be told of it, its retry tells.
 */
function noteResolution(
  context: PipelineContext,
  reserved: Reserved,
  call: SettledCall,
  resolution: Resolution | undefined,
): void {
  const { record } = call
  if (resolution === undefined) return
  if (resolution.recordFault !== undefined) reportFault(context, reserved.requestId, 'usage', resolution.recordFault)
  // Most calls have nothing to tell.
  if (resolution.resolved && resolution.shortfall === 0n && resolution.crossings === undefined) return
  const hold = unsettled(reserved, call)
  if (resolution.resolved) emitCharged(context, hold, resolution)
  else if (resolution.endedBy !== 'settled' && hold.amountNanoDollars > 0n) {
    emitGivenUp(context, hold, 'hold-ended', undefined)
    if (record !== undefined) addFreeRecord(context, record, hold.amountNanoDollars)
  }
}

function emitCharged(
  context: PipelineContext,
  hold: UnsettledHold,
  charge: Pick<Resolution, 'charged' | 'shortfall' | 'crossings'>,
): void {
  emitShortfall(context, hold, charge)
  emitCrossings(context, hold, charge.crossings)
}

/** The record of a charge is written with it; any other is written here. */
function noteRecord(context: PipelineContext, { amount }: SettledCall, record: UsageDraft): void {
  if (amount === undefined) addFreeRecord(context, record, 0n)
  else context.usage?.noted()
}

function addFreeRecord(context: PipelineContext, record: UsageDraft, dueNanoDollars: bigint): void {
  const ended = { endedAtMs: context.clock.now(), dueNanoDollars, chargedNanoDollars: 0n }
  context.usage?.add(usageRecord(record, ended))
}

function unsettled(reserved: Reserved, call: SettledCall): UnsettledHold {
  const { requestId, hold, principal } = reserved
  const { accountId, keyId } = principal
  const amountNanoDollars = dueOf(call)
  return { requestId, holdId: hold?.id, taskId: undefined, accountId, keyId, amountNanoDollars }
}

/** What a call costs, nano-dollars. */
function dueOf({ amount }: SettledCall): bigint {
  return amount ?? 0n
}

/** See {@link SettledCall.amount}. */
function amountOf(
  reserved: Reserved,
  { candidate, own }: SettlementInput,
  lastUsage: Usage | undefined,
): bigint | undefined {
  const { hold } = reserved
  if (hold === undefined) return undefined
  if (own?.nanoDollars !== undefined) return own.nanoDollars
  const { earlier } = reserved
  const isLastCharged = lastUsage !== undefined && candidate !== undefined
  // A modality that has no price cannot appear after a hold was priced, unless the vendor adds it; the hold bounds it then.
  const last = isLastCharged ? (chargeFor(reserved, candidate, lastUsage) ?? hold.amount) : undefined
  if (earlier?.isCharged !== true) return last
  // Each call has its own tier of prices. What hooks charge is in the last one that is charged.
  const first = chargeFor(reserved, earlier.candidate, earlier.usage, last === undefined ? undefined : 0)
  return first === undefined ? hold.amount : first + (last ?? 0n)
}

function emitEnded(
  context: PipelineContext,
  reserved: Reserved,
  { candidate, ending, status, own }: SettlementInput,
  { usage, costNanoDollars = 0n, dueNanoDollars }: SettlementResult,
): void {
  emitTo(context.onEvent, context.logger, {
    type: 'request-ended',
    requestId: reserved.requestId,
    endpoint: reserved.endpoint.id,
    accountId: reserved.principal.accountId,
    keyId: reserved.principal.keyId,
    model: candidate?.model.id ?? reserved.body.model,
    vendor: candidate?.vendor.id,
    ending: ending.kind,
    status,
    code: ending.error?.code,
    usage,
    cachedUsage: own?.cachedUsage,
    costNanoDollars,
    dueNanoDollars,
    durationMs: context.clock.now() - reserved.startedAtMs,
    tags: attributionOf(reserved)?.tags ?? [],
  })
}

/** Gives what the ledger says; undefined where there was no hold. */
function resolveHold(
  context: PipelineContext,
  reserved: Reserved,
  call: SettledCall,
): MaybePromise<Resolution | undefined> {
  const { input, usage, amount, record } = call
  const { hold, claim } = reserved
  const { candidate, answer, ending, own } = input
  if (hold === undefined) return claim === undefined ? undefined : resolveClaim(context, claim, ending, answer)
  const nowMs = context.clock.now()
  if (amount === undefined || (candidate === undefined && own === undefined))
    return context.store.ledger.void(hold.id, nowMs)
  const model = candidate?.model.id ?? reserved.chain[0]?.id ?? reserved.body.model
  const description = `${reserved.endpoint.id} ${model}`
  const { endpoint, principal } = reserved
  const details = {
    keyId: principal.keyId,
    endpoint: endpoint.id,
    model,
    vendor: candidate?.vendor.id ?? own?.source ?? '',
    usage: own?.cachedUsage === undefined ? (usage ?? {}) : { ...own.cachedUsage, ...usage },
  }
  const { spendingThresholds } = context
  const thresholds = context.onEvent === undefined ? undefined : spendingThresholds
  const settlement = { holdId: hold.id, amount, description, details, answer, record, thresholds }
  return context.store.ledger.settle(settlement, nowMs)
}

async function resolveClaim(
  context: PipelineContext,
  claim: IdempotencyClaim,
  ending: CallEnding,
  answer: StoredAnswer | undefined,
): Promise<undefined> {
  const isKept = answer !== undefined && ending.kind === 'completed'
  await (isKept ? completeKey(context, claim, answer) : context.store.idempotency.release(claim))
}

/** Tells the operator what an account owes from now on, if the balance did not cover a charge. */
export function emitShortfall(
  context: PipelineContext,
  { requestId, taskId, accountId, keyId }: Pick<UnsettledHold, 'requestId' | 'taskId' | 'accountId' | 'keyId'>,
  { charged, shortfall }: Pick<Resolution, 'charged' | 'shortfall'>,
): void {
  if (shortfall === 0n) return
  emit(context, {
    type: 'charge-shortfall',
    requestId,
    taskId,
    accountId,
    keyId,
    dueNanoDollars: charged + shortfall,
    chargedNanoDollars: charged,
    owedNanoDollars: shortfall,
  })
}

type GivenUp = Extract<GatewayEvent, { type: 'settlement-given-up' }>

/** What an operator needs to mend the ledger by hand, as the event has it. */
export type UnsettledHold = Omit<GivenUp, 'type' | 'reason' | 'error'>

/** Has a settlement that failed tried again; the operator is told when it is given up. */
export function settleLater(
  context: PipelineContext,
  hold: UnsettledHold,
  settlement: Pick<WaitingSettlement, 'run' | 'untilMs' | 'error'>,
): void {
  const { run, untilMs, error } = settlement
  const giveUp = (reason: GiveUpReason, last: unknown): void => emitGivenUp(context, hold, reason, last)
  context.settlementRetries.add({ run, untilMs, error, giveUp })
}

/** Tells the operator that a hold was not settled and will not be. */
export function emitGivenUp(
  context: PipelineContext,
  hold: UnsettledHold,
  reason: GivenUp['reason'],
  error: unknown,
): void {
  const { amountNanoDollars, ...named } = hold
  // Loggers write JSON, which has no bigint.
  const amount = formatDollars(amountNanoDollars)
  context.logger.error('a settlement is given up', { ...named, amount, reason, error })
  emit(context, { type: 'settlement-given-up', ...hold, reason, error })
}
