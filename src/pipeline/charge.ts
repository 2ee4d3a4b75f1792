import { isCount } from '../catalog/prices/plausible-usage.ts'
import type { GatewayEvent } from '../core/events.ts'
import { isPending, type MaybePromise } from '../core/maybe-promise.ts'
import { formatDollars } from '../core/money.ts'
import { type Usage, type UsageField, withHookUnits } from '../core/usage.ts'
import type { IdempotencyClaim, StoredAnswer } from '../stores/idempotency-store.ts'
import type { Resolution } from '../stores/resolution.ts'
import type { ThresholdCrossing } from '../stores/spending.ts'
import { type UsageDraft, usageRecord } from '../usage/usage-record.ts'
import { release } from './admission.ts'
import type { Candidate, Reserved } from './call-record.ts'
import { chargeableUsage, reportBounds } from './estimate.ts'
import { completeKey } from './idempotent-request.ts'
import { emit, emitTo, type PipelineContext, reportFault } from './pipeline-context.ts'
import { chargeFor } from './pricing.ts'
import type { GiveUpReason, WaitingSettlement } from './store-health.ts'
import { attributionOf, type EndedCall, emitUnbilledEnding, usageDraft } from './usage-after-failure.ts'

/** Facts of an ended call that the settlement needs. */
export interface SettlementInput extends EndedCall {
  /** Answer to store under the caller's Idempotency-Key if the call was charged, or completed with billing off. */
  readonly answer: StoredAnswer | undefined
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
  const used = settledUsage(context, reserved, input)
  if (used?.outputTokens !== undefined && input.own === undefined) noteSpeed(context, reserved, input, used)
  const isCharged = used !== undefined || input.own?.nanoDollars !== undefined
  const usage = isCharged && reserved.hookUnits > 0 ? withHookUnits(used ?? {}, reserved.hookUnits) : used
  const record = context.usage && usageDraft(context, reserved, input, usage)
  const call: SettledCall = { input, usage, amount: amountOf(reserved, input, used), record }
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
  } catch (error) {
    reportFault(context, reserved.requestId, 'settle', error)
    resolveLater(context, reserved, call, error)
  }
  // The hold has ended or will end.
  if (record !== undefined) noteRecord(context, call, record)
  const { candidate, ending, firstByteMs } = input
  if (candidate !== undefined) emitUnbilledEnding(context, reserved, candidate, ending)
  const counted = usage ?? ending.unbilled?.usage
  const released = release(context, reserved, (counted?.inputTokens ?? 0) + (counted?.outputTokens ?? 0))
  if (isPending(released)) await released
  const result = { usage, costNanoDollars, dueNanoDollars }
  if (context.onEvent !== undefined) emitEnded(context, reserved, input, result)
  observation?.settled(reserved, { ...input, firstByteMs, ...result })
  return result
}

/** Returns the cost of a call. Avoids an addition, which would create another bigint, for nearly every call. */
function totalOf({ charged, shortfall }: Resolution): bigint {
  return shortfall === 0n ? charged : charged + shortfall
}

/** Notes the speed of a model, from an answer with reported usage. */
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

/** The record of a charge is written together with it; other records are written here. */
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
  const settlement = { holdId: hold.id, amount, description, details, answer, record, thresholds }
  return context.store.ledger.settle(settlement, nowMs)
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
