// See docs/decisions/0005-charges-without-a-report.md.

import { isCount } from '../catalog/prices/plausible-usage.ts'
import { GatewayError } from '../core/errors.ts'
import type { GatewayEvent } from '../core/events.ts'
import { isPending, type MaybePromise } from '../core/maybe-promise.ts'
import { formatDollars } from '../core/money.ts'
import { type UnbilledUsage, type Usage, type UsageField, withHookUnits } from '../core/usage.ts'
import type { IdempotencyClaim, StoredAnswer } from '../stores/idempotency-store.ts'
import { endUserOf } from '../stores/principal.ts'
import type { Resolution } from '../stores/resolution.ts'
import type { ThresholdCrossing } from '../stores/spending.ts'
import type { TaskDetails } from '../stores/task-store.ts'
import { storableText, tagsOf, type UsageDraft, usageRecord } from '../usage/usage-record.ts'
import { release } from './admission.ts'
import type { Candidate, Reserved } from './call-record.ts'
import type { ChargedCall } from './commit-with.ts'
import { type AttemptFailure, mayStillRun } from './error-classification.ts'
import {
  chargeableUsage,
  cutUsage,
  estimatedUsage,
  isSetByRequest,
  mostUsage,
  reportBounds,
  usagePart,
} from './estimate.ts'
import { completeKey } from './idempotent-request.ts'
import { emit, emitTo, type PipelineContext, reportFault } from './pipeline-context.ts'
import { chargeFor } from './pricing.ts'
import type { GiveUpReason, WaitingSettlement } from './store-health.ts'
import { type CallEnding, uncharged } from './vendor-response.ts'

/** Facts of an ended call that the settlement needs. */
export interface SettlementInput extends EndedCall {
  /** Answer to store under the caller's Idempotency-Key if the call was charged, or completed with billing off. */
  readonly answer: StoredAnswer | undefined
  /** Answer that is sent as a whole, if the host's statements need it. */
  readonly wholeAnswer?: StoredAnswer | undefined
  /** Set if the gateway itself answered: from the cache, or with the answer of a hook. */
  readonly own?: OwnAnswer | undefined
}

/** Answer for which no vendor was called. */
export interface OwnAnswer {
  /** Source in the journal, instead of a vendor's id. */
  readonly source: 'cache' | 'hook'
  /** Usage of the original call, for an answer from the cache. */
  readonly cachedUsage: Usage | undefined
  /** Charge of the answer, or `undefined` to charge the call that failed before. */
  readonly nanoDollars: bigint | undefined
}

/** Ended call with its usage and its record. */
interface SettledCall {
  readonly input: SettlementInput
  /** Charged usage, or `undefined` if nothing is charged. */
  readonly usage: Usage | undefined
  /** Charge in nano-dollars, or `undefined` if nothing is charged and a hold is voided. */
  readonly amount: bigint | undefined
  /** Record, or `undefined` if calls are not recorded. */
  readonly record: UsageDraft | undefined
}

/** Result of a settlement. */
export interface SettlementResult {
  /** Charge in nano-dollars; undefined if billing is off, or the store was unreachable so far. */
  readonly costNanoDollars: bigint | undefined
  /** Cost of the call. Exceeds the charge if the balance was too low or the store was unreachable; 0 if it is free. */
  readonly dueNanoDollars: bigint
  readonly usage: Usage | undefined
  /** Error for the caller, because the host's statements and the charge were not committed. */
  readonly failure: GatewayError | undefined
}

/**
 * Ends the hold and the admission: the hold is charged or voided, the caller's lease and unused tokens are returned, and the host
 * is notified. The only place for whole answers, streams and failures. Never throws, because a store failure must not withhold a
 * vendor's answer: the settlement is retried until the hold has expired, and the host gets an `internal-error` event, and
 * `settlement-given-up` when retries end.
 */
export async function settle(
  context: PipelineContext,
  reserved: Reserved,
  input: SettlementInput,
): Promise<SettlementResult> {
  const durationMs = context.clock.now() - reserved.startedAtMs
  const used = settledUsage(context, reserved, input)
  if (used !== undefined && input.own === undefined) noteSpeed(context, reserved, input, used, durationMs)
  const isCharged = used !== undefined || input.own?.nanoDollars !== undefined
  const usage = isCharged && reserved.hookUnits > 0 ? withHookUnits(used ?? {}, reserved.hookUnits) : used
  const record = context.usage && usageDraft(reserved, input, usage, durationMs)
  let call: SettledCall = { input, usage, amount: amountOf(reserved, input, used), record }
  let failure: GatewayError | undefined
  const { observation } = reserved
  let costNanoDollars: bigint | undefined
  let dueNanoDollars = dueOf(call)
  try {
    const resolving =
      observation === undefined
        ? resolveHold(context, reserved, call)
        : observation.timed('settle', () => resolveHold(context, reserved, call))
    const resolution = isPending(resolving) ? await resolving : resolving
    noteResolution(context, reserved, call, resolution)
    costNanoDollars = resolution?.charged
    if (resolution?.resolved === true) dueNanoDollars = totalOf(resolution)
    else failure = commitFailure(reserved, call)
  } catch (error) {
    reportFault(context, reserved.requestId, 'settle', error)
    resolveLater(context, reserved, call, error)
    failure = commitFailure(reserved, call)
  }
  // The hold has ended or will end.
  if (record !== undefined && call.amount === undefined) addFreeRecord(context, record, 0n)
  // The record of a charge is written together with it.
  else if (record !== undefined) context.usage?.noted()
  const { candidate, ending, firstByteMs } = input
  if (candidate !== undefined) emitUnbilledEnding(context, reserved, candidate, ending)
  const counted = usage ?? ending.unbilled?.usage
  const released = release(context, reserved, (counted?.inputTokens ?? 0) + (counted?.outputTokens ?? 0))
  if (isPending(released)) await released
  const result = { usage, costNanoDollars, dueNanoDollars, failure }
  if (failure !== undefined) call = { ...call, input: failedInput(input, failure) }
  if (context.onEvent !== undefined) emitEnded(context, reserved, call, result)
  observation?.settled(reserved, { ...call.input, firstByteMs, ...result })
  return result
}

/** Returns the error of a call whose charge was not committed with the host's statements; `undefined` for other calls. */
function commitFailure({ hostCommit }: Reserved, { amount }: SettledCall): GatewayError | undefined {
  return hostCommit === undefined || amount === undefined ? undefined : new GatewayError('commit_failed')
}

/** Returns a call as failed. The status of a stream has been sent. */
function failedInput(input: SettlementInput, error: GatewayError): SettlementInput {
  const status = input.wholeAnswer === undefined ? input.status : error.status
  return { ...input, status, ending: { ...input.ending, kind: 'failed', error } }
}

/** Returns the cost of a call. Avoids an addition, which would create another bigint, for nearly every call. */
function totalOf({ charged, shortfall }: Resolution): bigint {
  return shortfall === 0n ? charged : charged + shortfall
}

/** Notes the speed of a model, from an answer with reported usage. */
function noteSpeed(
  { tokenSizes }: PipelineContext,
  { endpoint, body }: Reserved,
  { ending, candidate }: SettlementInput,
  { outputTokens }: Usage,
  durationMs: number,
): void {
  if (candidate === undefined || ending.kind !== 'completed' || ending.usage === undefined) return
  if (outputTokens === undefined) return
  tokenSizes.noteSpeed(candidate.model.id, outputTokens / (endpoint.answers?.(body) ?? 1), durationMs)
}

/** If retries fail too, the sweep frees the hold, and the call is not charged. */
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
 * Reports a charge that the balance did not cover, or that is no longer possible. If the hold was settled before, an earlier
 * attempt succeeded whose acknowledgement was lost; the retry reports its details.
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
  // Most calls have nothing to report.
  if (resolution.resolved && resolution.shortfall === 0n && resolution.crossings === undefined) return
  const hold = unsettled(reserved, call)
  if (resolution.resolved) emitCharged(context, hold, resolution)
  else if (reserved.hostCommit !== undefined) noteUncommitted(context, reserved, call)
  else if (resolution.endedBy !== 'settled' && hold.amountNanoDollars > 0n) {
    emitGivenUp(context, hold, 'hold-ended', undefined)
    if (record !== undefined) addFreeRecord(context, record, hold.amountNanoDollars)
  }
}

/** Records a call that is not charged because the host's statements failed, and reports what its vendor bills. */
function noteUncommitted(context: PipelineContext, reserved: Reserved, call: SettledCall): void {
  const failure = commitFailure(reserved, call)
  if (failure === undefined) return
  const { candidate, status, ending } = failedInput(call.input, failure)
  const { unbilled } = uncharged(ending)
  if (candidate !== undefined && unbilled !== undefined) emitUnbilledUsage(context, reserved, candidate, unbilled)
  if (call.record === undefined) return
  addFreeRecord(context, { ...call.record, ending: 'failed', status, code: failure.code }, 0n)
}

function emitCharged(
  context: PipelineContext,
  hold: UnsettledHold,
  charge: Pick<Resolution, 'charged' | 'shortfall' | 'crossings'>,
): void {
  emitShortfall(context, hold, charge)
  emitCrossings(context, hold, charge.crossings)
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

/** Returns the cost of a call in nano-dollars. */
function dueOf({ amount }: SettledCall): bigint {
  return amount ?? 0n
}

/** See {@link SettledCall.amount}. */
function amountOf(
  reserved: Reserved,
  { candidate, own }: SettlementInput,
  used: Usage | undefined,
): bigint | undefined {
  const { hold } = reserved
  if (hold === undefined) return undefined
  if (own?.nanoDollars !== undefined) return own.nanoDollars
  if (used === undefined || candidate === undefined) return undefined
  // A modality without a price can appear after pricing only if the vendor adds it; the hold limits it then.
  return chargeFor(reserved, candidate, used) ?? hold.amount
}

function emitEnded(
  context: PipelineContext,
  reserved: Reserved,
  { input: { candidate, ending, status, own }, record }: SettledCall,
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
    tags: record?.tags ?? attributionOf(reserved)?.tags ?? [],
  })
}

/** Returns the result of the ledger, or undefined if there was no hold. */
function resolveHold(
  context: PipelineContext,
  reserved: Reserved,
  call: SettledCall,
): MaybePromise<Resolution | undefined> {
  const { input, usage, amount, record } = call
  const { hold, claim } = reserved
  const { candidate, answer, ending, own } = input
  if (hold === undefined) return claim && endClaim(context, claim, ending.kind === 'completed' ? answer : undefined)
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
  const owner = { accountId: principal.accountId, keyId: principal.keyId, billing: context.billing }
  const settlement = { holdId: hold.id, amount, description, details, answer, record, thresholds, owner }
  const { clock, store } = context
  if (reserved.hostCommit === undefined) return store.ledger.settle(settlement, nowMs)
  const { requestId } = reserved
  const describe = (): ChargedCall => {
    const call = { requestId, accountId: principal.accountId, ...details, ending: ending.kind, costNanoDollars: amount }
    return { ...call, body: bodyOf(input.wholeAnswer) }
  }
  const failed = (error: unknown): void => reportFault(context, requestId, 'commitWith', error)
  return reserved.hostCommit.charge({ ledger: store.ledger, clock }, settlement, describe, failed)
}

/** Returns the value of a JSON answer, or the bytes of another one. */
function bodyOf(answer: StoredAnswer | undefined): unknown {
  const isJson = answer?.headers.some((header) => header.startsWith('application/json')) === true
  return isJson ? JSON.parse(Buffer.from(answer.body).toString()) : answer?.body
}

async function endClaim(
  context: PipelineContext,
  claim: IdempotencyClaim,
  answer: StoredAnswer | undefined,
): Promise<undefined> {
  await (answer === undefined ? context.store.idempotency.release(claim) : completeKey(context, claim, answer))
}

/** Notifies the operator of an account's debt if the balance did not cover a charge. */
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

/** Event fields that an operator needs to repair the ledger manually. */
export type UnsettledHold = Omit<GivenUp, 'type' | 'reason' | 'error'>

/** Retries a failed settlement later. The operator is notified when retries end. */
export function settleLater(
  context: PipelineContext,
  hold: UnsettledHold,
  settlement: Pick<WaitingSettlement, 'run' | 'untilMs' | 'error'>,
): void {
  const { run, untilMs, error } = settlement
  const giveUp = (reason: GiveUpReason, last: unknown): void => emitGivenUp(context, hold, reason, last)
  context.settlementRetries.add({ run, untilMs, error, giveUp })
}

/** Notifies the operator that a hold was not settled and will not be. */
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

/** Returns the vendor's report, made plausible and complete, or else the estimate; undefined if nothing is charged. */
export function settledUsage(
  context: PipelineContext,
  reserved: Reserved,
  { ending, candidate }: Pick<EndedCall, 'ending' | 'candidate'>,
): Usage | undefined {
  const { usage: reported, estimatedUsage } = ending
  if (candidate === undefined) return estimatedUsage
  if (reported === undefined) {
    const isMissing = ending.kind === 'completed' && isSoldByUsage(reserved)
    if (isMissing && estimatedUsage !== undefined)
      emit(context, { type: 'usage-missing', ...namedCall(reserved, candidate), usage: estimatedUsage })
    if (ending.kind === 'abandoned' && estimatedUsage !== undefined && isSoldByUsage(reserved)) {
      const elapsedMs = context.clock.now() - reserved.startedAtMs
      emit(context, { type: 'call-abandoned', ...namedCall(reserved, candidate), elapsedMs, usage: estimatedUsage })
    }
    return estimatedUsage
  }
  const bounds = reportBounds(reserved, candidate.model)
  const { usage, replaced } = chargeableUsage(reported, bounds, estimatedUsage ?? NOTHING_ESTIMATED)
  if (replaced.length > 0) emitImplausible(context, reserved, candidate, { reported, usage, fields: replaced })
  else if (ending.kind === 'completed' && ending.textBytes !== undefined) {
    const { outputTokens = 0, reasoningTokens = 0 } = usage
    context.tokenSizes.note(candidate.model.id, ending.textBytes, outputTokens - reasoningTokens)
    context.tokenSizes.noteReasoning(
      candidate.model.id,
      reasoningTokens / (reserved.endpoint.answers?.(reserved.body) ?? 1),
    )
  }
  return usage
}

const NOTHING_ESTIMATED: Usage = {}

function emitImplausible(
  context: PipelineContext,
  reserved: Reserved,
  candidate: Candidate,
  { reported, usage, fields }: { readonly reported: Usage; readonly usage: Usage; readonly fields: readonly string[] },
): void {
  const isCounted = fields.every((field) => isCount(field, reported[field as UsageField]))
  emit(context, {
    type: 'usage-implausible',
    ...namedCall(reserved, candidate),
    fields,
    reported: membersOf(reported, fields),
    charged: membersOf(usage, fields),
    reportedNanoDollars: isCounted ? chargeFor(reserved, candidate, reported) : undefined,
    dueNanoDollars: chargeFor(reserved, candidate, usage),
  })
}

/** Returns the named members of usage that are present. */
export function membersOf(usage: Usage, names: readonly string[]): Readonly<Partial<Record<UsageField, number>>> {
  return Object.fromEntries(Object.entries(usage).filter(([name]) => names.includes(name)))
}

/** Returns the ids of a call for an event. */
function namedCall({ requestId }: Reserved, { vendor, model }: Candidate) {
  return { requestId, vendor: vendor.id, model: model.id }
}

/** If usage has no price, a missing report needs no event. */
function isSoldByUsage({ endpoint: { isFree = false }, hold }: Reserved): boolean {
  return typeof isFree === 'boolean' ? !isFree : hold?.rates.some(({ pricesTokens }) => pricesTokens) === true
}

/** Account and key of a call. */
interface Charged {
  readonly requestId: string
  readonly accountId: string
  readonly keyId: string
}

/** Notifies the operator of the thresholds of caps, balance and credit limit that a charge has passed. */
export function emitCrossings(
  context: PipelineContext,
  { requestId, accountId, keyId }: Charged,
  crossings: readonly ThresholdCrossing[] = [],
): void {
  for (const { of, period, percent: thresholdPercent, bound, used } of crossings) {
    const told = { requestId, accountId, keyId, thresholdPercent }
    if (of === 'balance' || of === 'credit_limit') {
      const remainingNanoDollars = used < bound ? bound - used : 0n
      emit(context, { type: 'balance-low', ...told, of, totalNanoDollars: bound, remainingNanoDollars })
    } else if (period !== undefined) {
      const owner = of === 'account_cap' ? 'account' : 'key'
      const amounts = { capNanoDollars: bound, chargedNanoDollars: used }
      emit(context, { type: 'cap-reached', ...told, owner, period, ...amounts })
    }
  }
}

/** Failed attempt, and the usage that its vendor may bill. */
export interface FailedAttempt<Asked extends Candidate = Candidate> {
  readonly failure: AttemptFailure
  readonly candidate: Asked
  /** Usage that the vendor may bill without a report, or `undefined` for none. */
  readonly unreported: Usage | undefined
  /** Whether an event has reported the usage that the vendor may bill. It is not charged then. */
  readonly isTold?: boolean
}

/** Returns a failed attempt with its usage. */
export function failedAttempt<Asked extends Candidate>(
  call: Reserved,
  candidate: Asked,
  failure: AttemptFailure,
  operation: FailedOperation,
): FailedAttempt<Asked> {
  return { failure, candidate, unreported: estimateUnreported(call, failure, operation) }
}

/** Emits the usage that the vendor may bill for an attempt that no account is charged for. */
export function told<Asked extends Candidate>(
  context: PipelineContext,
  call: Reserved,
  attempt: FailedAttempt<Asked>,
): FailedAttempt<Asked> {
  const { failure, candidate, unreported } = attempt
  const { billedUsage, isBillCounted: isEstimated = false } = failure
  if (billedUsage !== undefined) emitUnbilledUsage(context, call, candidate, { usage: billedUsage, isEstimated })
  if (unreported !== undefined) emitUnbilledUsage(context, call, candidate, { usage: unreported, isEstimated: true })
  return { ...attempt, isTold: true }
}

/** Usage of a failed call: the charged part, and the part that only the operator sees. */
type FailedUsage = Pick<CallEnding, 'usage' | 'estimatedUsage' | 'unbilled' | 'unreportedUsage'>

/** Returns the usage of a call that no vendor answered. It is not charged, and the operator sees what the vendor may bill. */
export function failedUsage(last: FailedAttempt | undefined): FailedUsage {
  if (last === undefined || last.isTold === true) return NOTHING_CHARGED
  const { failure, unreported: unreportedUsage } = last
  const { billedUsage, isBillCounted: isEstimated = false } = failure
  if (billedUsage === undefined) return { ...NOTHING_CHARGED, unreportedUsage }
  return { ...NOTHING_CHARGED, unbilled: { usage: billedUsage, isEstimated }, unreportedUsage }
}

function estimate(usage: Usage): Pick<CallEnding, 'usage' | 'estimatedUsage'> {
  return { usage: undefined, estimatedUsage: usage }
}

const NOTHING_CHARGED = { usage: undefined, estimatedUsage: undefined }

/** Time for which a paid whole answer is awaited after its caller has disconnected, unless the policy drains; at most `drainMs`. */
export const WHOLE_ANSWER_WAIT_MS = 10_000

/**
 * Returns the usage that a disconnected caller pays for. If the vendor failed or timed out, it is the same as for any other call.
 * If the call was stopped because its caller disconnected, it is the prompt and the output written in that time. Vendors continue
 * with a whole answer, so at least {@link WHOLE_ANSWER_WAIT_MS} after the disconnect count.
 */
export function abandonedUsage(
  context: PipelineContext,
  call: Reserved,
  last: FailedAttempt | undefined,
  { hasHiddenReasoning, isMaking }: { readonly hasHiddenReasoning: boolean; readonly isMaking: boolean },
): FailedUsage {
  if (last === undefined || last.isTold === true) return failedUsage(last)
  const { mayHaveBegun, billedUsage, isBillCounted, outcome, isPartDone } = last.failure
  // Some parts were answered, and the others were stopped before they were sent.
  if (!mayHaveBegun && outcome === 'ignored' && isPartDone === true)
    return { usage: billedUsage, estimatedUsage: undefined }
  if (!mayHaveBegun || outcome !== 'ignored') return failedUsage(last)
  const nowMs = context.clock.now()
  const unwaitedMs = isMaking ? Math.max(0, WHOLE_ANSWER_WAIT_MS - call.calls.readOnMs(nowMs)) : 0
  const stoppedAfterMs = nowMs - call.startedAtMs + unwaitedMs
  const isUnseen = hasHiddenReasoning || isMaking
  const estimated = estimatedUsage(call, { outputBytes: 0, isUnseen, isStopped: true, stoppedAfterMs })
  if (billedUsage === undefined) return estimate(estimated)
  if (isBillCounted === true) return estimate(cutUsage(billedUsage, estimated))
  // The report covers the answered parts, and the others were sent too.
  const usage = isPartDone === true ? mostUsage(billedUsage, estimated) : cutUsage(billedUsage, estimated)
  return { usage, estimatedUsage: estimated }
}

/** Call that its vendor bills, or may bill. */
export interface UsedCall extends UnbilledUsage {
  readonly reserved: Reserved
  readonly candidate: Candidate
}

/** Reports usage to the operator that a vendor has billed and no account is charged for. */
export function emitUnbilledUsage(
  context: PipelineContext,
  { requestId, principal }: Reserved,
  { vendor, model }: Candidate,
  { usage, isEstimated }: UnbilledUsage,
): void {
  emit(context, {
    type: 'unbilled-usage',
    requestId,
    accountId: principal.accountId,
    keyId: principal.keyId,
    vendor: vendor.id,
    model: model.id,
    usage,
    isEstimated,
  })
}

/** Emits `unbilled-usage` for the part of an ended call that is not charged. */
export function emitUnbilledEnding(
  context: PipelineContext,
  call: Reserved,
  candidate: Candidate,
  { unbilled, unreportedUsage: usage }: CallEnding,
): void {
  if (usage !== undefined) emitUnbilledUsage(context, call, candidate, { usage, isEstimated: true })
  if (unbilled !== undefined) emitUnbilledUsage(context, call, candidate, unbilled)
}

/** Minimum number of bytes of a whole answer that are not text, but JSON around it. */
const ENVELOPE_BYTES = 200

/** Facts of an attempt's operation. */
interface FailedOperation {
  readonly hasHiddenReasoning: boolean
  /** Whether it is a whole answer of tokens, which is generated before any of it arrives. */
  readonly isMaking: boolean
}

/**
 * Returns the usage that a vendor may bill for an attempt that failed without a report: it did not reject it, bills rejections,
 * or did not reject some parts. A whole answer that took too long, or was stopped, may still be generated, so its output counts
 * as reserved. Returns `undefined` if nothing may be billed.
 */
function estimateUnreported(
  call: Reserved,
  failure: AttemptFailure,
  { hasHiddenReasoning, isMaking }: FailedOperation,
): Usage | undefined {
  const { mayHaveBegun, outcome, billedUsage, answerBytes, refusedBytes, begunShare } = failure
  const { endpoint } = call
  if (begunShare === undefined && refusedBytes === undefined && (!mayHaveBegun || billedUsage !== undefined))
    return undefined
  // A task is polled until its end.
  const isFree = endpoint.isFree === true || (endpoint.isFree === 'unless-priced' && call.hold === undefined)
  if (endpoint.task !== undefined || isFree) return undefined
  if (refusedBytes !== undefined) return refusedUsage(call, refusedBytes)
  const isAborted = outcome === 'ignored'
  const isStopped = isMaking && answerBytes === undefined && (isAborted || mayStillRun(failure))
  const outputBytes = Math.max(0, (answerBytes ?? 0) - ENVELOPE_BYTES)
  const isUnseen = hasHiddenReasoning || isStopped
  const usage = estimatedUsage(call, { outputBytes, isUnseen, isStopped: isAborted || isStopped })
  return begunShare === undefined ? usage : usagePart(usage, begunShare)
}

/** Returns the prompt and the generated text. Images and speech, which are known from the request, were not generated. */
function refusedUsage(call: Reserved, outputBytes: number): Usage | undefined {
  return isSetByRequest(call.estimate) ? undefined : estimatedUsage(call, { outputBytes, isUnseen: false })
}

/** Headers in which a caller names its end user, and its own tags of the call, separated by commas. */
const USER_HEADER = 'x-signalbox-user'
const TAGS_HEADER = 'x-signalbox-tags'

/** Ended call. */
export interface EndedCall {
  readonly ending: CallEnding
  readonly candidate: Candidate | undefined
  /** HTTP status of the caller's answer. */
  readonly status: number
  /** Milliseconds from the request's arrival to the first content, or `undefined` if there was none. */
  readonly firstByteMs?: number | undefined
  /** The vendor's id of its answer, if it has one. */
  readonly vendorRequestId?: string | undefined
}

/** Returns the record of a call before its charge is known. */
function usageDraft(
  reserved: Reserved,
  { candidate, ending, status, firstByteMs, vendorRequestId }: EndedCall,
  usage: Usage | undefined,
  durationMs: number,
): UsageDraft {
  const { principal, body, chain } = reserved
  const attribution = attributionOf(reserved)
  return {
    id: reserved.requestId,
    accountId: principal.accountId,
    keyId: principal.keyId,
    endUser: attribution?.endUser,
    tags: attribution?.tags ?? NO_TAGS,
    endpoint: reserved.endpoint.id,
    model: candidate?.model.id ?? chain[0]?.id ?? body.model,
    requestedModel: body.model,
    vendor: candidate?.vendor.id,
    credentialId: candidate?.credentialId,
    vendorRequestId,
    ending: ending.kind,
    status,
    code: ending.error?.code,
    isStream: reserved.isStream,
    usage: usage ?? ending.unbilled?.usage ?? NO_USAGE,
    isEstimated: ending.usage === undefined && ending.estimatedUsage !== undefined && usage !== undefined,
    durationMs,
    firstByteMs,
    attempts: reserved.attemptsUntil(reserved.startedAtMs + durationMs),
  }
}

/** Returns the end user and tags of a call, or `undefined` if there are neither. Values of the host take precedence. */
export function attributionOf({
  principal,
  request,
  body,
}: Pick<Reserved, 'principal' | 'request' | 'body'>): TaskDetails['attribution'] {
  const named = endUserOf(principal, body) ?? request.header(USER_HEADER)
  const endUser = named && storableText(named)
  const tags = tagsOf(principal.tags, request.header(TAGS_HEADER))
  return endUser === undefined && tags.length === 0 ? undefined : { endUser, tags }
}

const NO_TAGS: readonly string[] = []
const NO_USAGE: Usage = {}
