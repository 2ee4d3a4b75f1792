import { Buffer } from 'node:buffer'
import { GatewayError } from '../../core/errors.ts'
import { readExactCallerJson } from '../../core/exact-json.ts'
import { isJsonObject } from '../../core/json.ts'
import { isPending } from '../../core/maybe-promise.ts'
import { type TextPart, withTexts } from '../../endpoints/texts.ts'
import { callHook, HookDeadline } from '../../hooks/call-hook.ts'
import type { FailureResult, HookCall, HookFailure, RequestResult } from '../../hooks/hook.ts'
import type { CompiledHook } from '../../hooks/hook-table.ts'
import { release } from '../admission.ts'
import type { Admitted, Parsed, ParsedRequest, Received, Reserved } from '../call-record.ts'
import { settle } from '../charge.ts'
import { reparse } from '../parse.ts'
import { emit, type PipelineContext, reportFault } from '../pipeline-context.ts'
import { priceHookUnits } from '../pricing.ts'
import { type ReserveOutcome, reservePriced, StoredReplay } from '../reserve.ts'
import { announce, ownHead, respondReplay, respondWhole, streamTypeOf } from '../respond.ts'
import type { CallEnding } from '../vendor-response.ts'
import { CallHookFacts, checkedResult, checkedTexts, denied, frozen, hookFailed } from './hook-facts.ts'

/** Request as its caller wrote it, without the content of references. */
export type WrittenRequest = Pick<ParsedRequest, 'body' | 'bytes'>

/** Result of the request hooks. */
export interface HookedOutcome {
  readonly changed: ParsedRequest | undefined
  readonly answered: { readonly hook: CompiledHook; readonly said: HookReply } | undefined
}

/**
 * Runs the request hooks in order before a hold is created. Each one reads the result of the one before it.
 * @returns The replaced request and the answer of a hook; `undefined` for a missing part.
 * @throws GatewayError `request_denied`, `hook_failed`, or `client_closed_request` if the caller has disconnected.
 */
export async function runRequestHooks(
  context: PipelineContext,
  admitted: Admitted,
  written: WrittenRequest,
  hooks: readonly CompiledHook[],
): Promise<HookedOutcome> {
  const { caller } = admitted
  let changed: ParsedRequest | undefined
  try {
    for (const hook of hooks) {
      const current = changed ?? written
      const deadline = new HookDeadline()
      caller.onDisconnect(() => deadline.abort())
      const model = admitted.chain[0]?.id ?? current.body.model
      const call = new RequestCall(admitted, current, model, deadline)
      // A hook receives only calls of the endpoints that it covers.
      const called = callHook(context.clock, hook.timeoutMs, deadline, () =>
        hook.hook.request?.(call as unknown as HookCall),
      )
      // A hook that has returned its result can no longer charge, not even in its next microtask.
      const outcome = isPending(called) ? await called : called
      if (caller.isDisconnected) throw new GatewayError('client_closed_request')
      const units = call.ended()
      let failure: Parameters<typeof hookFailed>[3] | undefined
      if (outcome.kind === 'fault') failure = { hook, point: 'request', ...outcome }
      else {
        const deny = denialOf(outcome.result)
        if (deny !== undefined) {
          admitted.chargedUnits(units)
          throw denied(context, admitted, model, { hook, point: 'request', denial: deny.deny }).error
        }
        try {
          const result = checkedResult<RequestResult>(outcome.result, ['body', 'texts', 'deny', 'answer'])
          const said = result?.answer === undefined ? undefined : saidBy(result, admitted, current)
          if (said === undefined && result !== undefined)
            changed = rewritten(context, admitted, current, result) ?? changed
          admitted.chargedUnits(units)
          if (said !== undefined) return { changed, answered: { hook, said } }
        } catch (error) {
          failure = { hook, point: 'request', fault: 'unusable-result', error }
        }
      }
      const error = failure && hookFailed(context, admitted, model, failure)
      if (error !== undefined) throw error
    }
  } finally {
    caller.onDisconnect(undefined)
  }
  return { changed, answered: undefined }
}

/** @throws TypeError for an answer together with a rewrite, and for an answer that cannot be sent. */
function saidBy(result: RequestResult, admitted: Admitted, current: WrittenRequest): HookReply {
  if (result.body !== undefined || result.texts !== undefined)
    throw new TypeError('a hook returned an answer and another request')
  return checkedAnswer(result.answer, admitted, current)
}

/** A denial counts even if other members are returned with it. */
export function denialOf(result: unknown): { readonly deny: unknown } | undefined {
  if (typeof result !== 'object' || result === null || !('deny' in result) || result.deny === undefined)
    return undefined
  return { deny: result.deny }
}

/** @throws GatewayError for a body that a caller could not send either, or the error of an impossible change. */
function rewritten(
  context: PipelineContext,
  admitted: Admitted,
  current: WrittenRequest,
  { body, texts }: RequestResult,
): ParsedRequest | undefined {
  let base = current
  let changed: ParsedRequest | undefined
  if (body !== undefined) {
    if (current.bytes === undefined) throw new TypeError('the body of a form cannot be replaced; return texts')
    changed = reparse(context, admitted, { value: body })
    base = changed
  }
  if (texts === undefined) return changed
  const reader = admitted.endpoint.texts
  const parts = reader?.request(base.body) ?? []
  const known = checkedTexts(texts, parts)
  if (base.bytes !== undefined) {
    const { value } = readExactCallerJson(base.bytes, admitted.called.exactMembers)
    return reparse(context, admitted, { value: withTexts(value, parts, known) })
  }
  if (reader?.replace === undefined) throw new TypeError('the texts of this request cannot be replaced')
  return reparse(context, admitted, { form: reader.replace(base.body, known) })
}

/** Maximum number of units of one call, far below the limit of exact numbers. */
const MAX_HOOK_UNITS = 1_000_000_000

type AskedRequest = ConstructorParameters<typeof CallHookFacts>[0] &
  Pick<Admitted, 'isStream' | 'hookUnits' | 'endpoint'>

/** Request in the view of a hook. */
export class RequestCall extends CallHookFacts {
  readonly isStream: boolean
  readonly #admitted: AskedRequest
  readonly #current: WrittenRequest
  #isFrozen = false
  #units = 0
  #isOver = false

  constructor(admitted: AskedRequest, current: WrittenRequest, model: string, deadline: HookDeadline) {
    super(admitted, model, deadline)
    this.isStream = admitted.isStream
    this.#admitted = admitted
    this.#current = current
  }

  get body(): WrittenRequest['body'] {
    if (!this.#isFrozen) frozen(this.#current.body)
    this.#isFrozen = true
    return this.#current.body
  }

  charge(meter: 'hook_unit', units: number): void {
    if (meter !== 'hook_unit') throw new TypeError(`a hook charges hook_unit, and not ${String(meter)}`)
    const known = this.#admitted.hookUnits + this.#units
    if (!(Number.isSafeInteger(units) && units >= 0 && known + units <= MAX_HOOK_UNITS))
      throw new TypeError(`charge: units must be a whole number, at most ${MAX_HOOK_UNITS} for a call`)
    if (this.#isOver) throw new TypeError('charge: this point of the hook has ended')
    this.#units += units
  }

  /** Ends the point: returns the units charged in it, and accepts no more. */
  ended(): number {
    this.#isOver = true
    return this.#units
  }

  texts(): readonly TextPart[] {
    return this.#admitted.endpoint.texts?.request(this.#current.body) ?? []
  }
}

/** Request of a known caller, in any stage. */
type KnownRequest = Received & Partial<Parsed>

/** Lets hooks replace message and status of an error of a known caller. Its code stays. Never throws. */
export async function runFailedHooks(
  context: PipelineContext,
  record: KnownRequest,
  error: GatewayError,
): Promise<GatewayError> {
  const endpoint = record.endpoint ?? record.called
  const hooks = context.hooks?.of(endpoint)?.failed
  const { principal } = record
  if (hooks === undefined || principal === undefined) return error
  const model = record.chain?.[0]?.id ?? record.body?.model ?? ''
  const { requestId, request } = record
  const call = { requestId, request, principal, endpoint, body: record.body ?? { model } }
  let current = error
  for (let index = hooks.length - 1; index >= 0; index--) {
    const hook = hooks[index]!
    const deadline = new HookDeadline()
    const failure = new CallFailure(call, model, current, deadline)
    const outcome = await callHook(context.clock, hook.timeoutMs, deadline, () => hook.hook.failed?.(failure))
    if (outcome.kind === 'fault') {
      current = hookFailed(context, call, model, { hook, point: 'failed', ...outcome }) ?? current
      continue
    }
    try {
      current = replaced(current, checkedResult<FailureResult>(outcome.result, ['message', 'status']))
    } catch (fault) {
      current =
        hookFailed(context, call, model, { hook, point: 'failed', fault: 'unusable-result', error: fault }) ?? current
    }
  }
  return current
}

function replaced(error: GatewayError, result: FailureResult | undefined): GatewayError {
  if (result === undefined) return error
  const { message = error.message, status = error.status } = result
  if (typeof message !== 'string') throw new TypeError('message must be a string')
  if (!(Number.isInteger(status) && status >= 400 && status <= 599))
    throw new TypeError('status must be from 400 to 599')
  return new GatewayError(error.code, { ...error, message, status, cause: error.cause })
}

class CallFailure extends CallHookFacts implements HookFailure {
  readonly code: HookFailure['code']
  readonly status: number
  readonly message: string

  constructor(
    call: ConstructorParameters<typeof CallHookFacts>[0],
    model: string,
    { code, status, message }: GatewayError,
    deadline: HookDeadline,
  ) {
    super(call, model, deadline)
    this.code = code
    this.status = status
    this.message = message
  }
}

const COMPLETED: CallEnding = { kind: 'completed', usage: undefined, estimatedUsage: undefined, error: undefined }

/** Checked answer of a hook to a request. */
type HookReply =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'raw'; readonly status: number; readonly headers: readonly string[]; readonly body: Buffer }

/** Headers that the gateway writes itself. */
const HEADER_OF_TRANSPORT =
  /^(?:content-length|transfer-encoding|connection|keep-alive|upgrade|x-request-id|x-signalbox-.*)$/i

/**
 * Checks an answer of a hook.
 * @throws TypeError for an answer that cannot be sent.
 */
function checkedAnswer(
  answer: unknown,
  { endpoint }: Pick<Admitted, 'endpoint'>,
  { body }: Pick<ParsedRequest, 'body'>,
): HookReply {
  if (!isJsonObject(answer)) throw new TypeError('answer must be an object')
  const unknown = Object.keys(answer).find((name) => !['text', 'body', 'status', 'headers'].includes(name))
  if (unknown !== undefined) throw new TypeError(`answer has an unknown member ${JSON.stringify(unknown)}`)
  if (!('text' in answer)) return rawAnswer(answer)
  if (typeof answer['text'] !== 'string') throw new TypeError('answer.text must be a string')
  if (Object.keys(answer).length > 1) throw new TypeError('answer has either text, or body, status and headers')
  if (endpoint.texts?.answer?.said === undefined)
    throw new TypeError(`answers of the endpoint ${endpoint.id} have no plain text form. Set answer.body`)
  if (endpoint.deferral?.applies(body as never) === true)
    throw new TypeError('a request in the background cannot be answered with a text. Set answer.body')
  return { kind: 'text', text: answer['text'] }
}

function rawAnswer({ body, status = 200, headers = {} }: Readonly<Record<string, unknown>>): HookReply {
  if (!(Number.isInteger(status) && (status as number) >= 200 && (status as number) <= 599))
    throw new TypeError('answer.status must be from 200 to 599')
  if (!isJsonObject(headers)) throw new TypeError('answer.headers must be an object')
  const list: string[] = []
  let hasType = false
  for (const [name, value] of Object.entries(headers)) {
    if (
      !HEADER_NAME.test(name) ||
      HEADER_OF_TRANSPORT.test(name) ||
      typeof value !== 'string' ||
      !HEADER_VALUE.test(value)
    )
      throw new TypeError(`answer.headers: ${JSON.stringify(name)} cannot be sent`)
    if (name.toLowerCase() === 'content-type') hasType = true
    list.push(name.toLowerCase(), value)
  }
  const { bytes, type } = bytesOf(body)
  if (!hasType) list.unshift('content-type', type)
  return { kind: 'raw', status: status as number, headers: list, body: bytes }
}

function bytesOf(body: unknown): { readonly bytes: Buffer; readonly type: string } {
  if (typeof body === 'string') return { bytes: Buffer.from(body), type: 'text/plain; charset=utf-8' }
  if (body instanceof Uint8Array) return { bytes: Buffer.from(body), type: 'application/octet-stream' }
  const json = JSON.stringify(body) as string | undefined
  if (json === undefined) throw new TypeError('answer.body must be a string, bytes or JSON')
  return { bytes: Buffer.from(json), type: 'application/json' }
}

/**
 * Answers a request with the answer of a hook, in the dialect of its endpoint, as a whole or as events. No vendor is called; the
 * charges of hooks are reserved and charged, and the Idempotency-Key is claimed. Releases the admission.
 * @throws GatewayError of `reserve`.
 */
export async function answerByHook(
  context: PipelineContext,
  admitted: Admitted,
  { hook, said }: { readonly hook: CompiledHook; readonly said: HookReply },
): Promise<void> {
  let outcome: ReserveOutcome
  try {
    outcome = await heldUnits(context, admitted)
  } catch (error) {
    await release(context, admitted, 0)
    throw error
  }
  if (outcome instanceof StoredReplay) {
    await release(context, admitted, 0)
    return respondReplay(admitted.sink, outcome.answer, admitted.requestId)
  }
  announce(context, outcome)
  const model = outcome.chain[0]?.id ?? outcome.body.model
  const { requestId, endpoint, principal } = outcome
  const { accountId, keyId } = principal
  emit(context, { type: 'hook-answered', requestId, hook: hook.name, endpoint: endpoint.id, accountId, keyId, model })
  const { status, headers, body } = said.kind === 'raw' ? said : written(context, outcome, model, said.text)
  const stored = { status, headers, body }
  const firstByteMs = context.clock.now() - outcome.startedAtMs
  const own = { source: 'hook', cachedUsage: undefined, nanoDollars: outcome.hold?.amount ?? 0n } as const
  const answer = outcome.claim && stored
  const wholeAnswer = outcome.isStream ? undefined : stored
  const input = { ending: COMPLETED, candidate: undefined, status, answer, wholeAnswer, own, firstByteMs }
  const { costNanoDollars = 0n, failure } = await settle(context, outcome, input)
  if (failure !== undefined) throw failure
  const cost = context.prices === undefined ? undefined : costNanoDollars
  respondWhole(outcome.sink, { status, headers: ownHead(outcome, headers, body.byteLength, cost) }, [body])
}

/** Returns a text in the dialect of the endpoint. */
function written(
  { clock }: PipelineContext,
  reserved: Reserved,
  model: string,
  text: string,
): { readonly status: number; readonly headers: readonly string[]; readonly body: Buffer } {
  const { endpoint, isStream, continued, requestId } = reserved
  const request = (continued?.recalled?.original?.request ?? reserved.body) as { readonly model: string }
  const facts = { request, model, nowMs: clock.now(), seed: requestId.replace(/^[a-z]+_/, ''), isStream }
  const said = endpoint.texts?.answer?.said?.(text, facts)
  if (said === undefined) throw new TypeError('a text was checked for a dialect that cannot write it')
  if (typeof said !== 'string')
    return { status: 200, headers: ['content-type', 'application/json'], body: Buffer.from(JSON.stringify(said)) }
  const headers = ['content-type', streamTypeOf(reserved), 'cache-control', 'no-cache, no-transform']
  return { status: 200, headers, body: Buffer.from(said) }
}

/**
 * Ends a request that a hook has denied after hooks charged for their work. If nothing can be charged, the denial stays and the
 * operator is notified. Releases the admission; never throws.
 */
export async function endDenied(context: PipelineContext, admitted: Admitted, error: GatewayError): Promise<void> {
  // The caller may send the same request again under its key, and hooks run on it again.
  admitted.unclaimed()
  let outcome: ReserveOutcome
  try {
    outcome = await heldUnits(context, admitted)
    if (outcome instanceof StoredReplay) throw new TypeError('a request without a key cannot be a replay')
  } catch (cause) {
    reportFault(context, admitted.requestId, 'the charge of hooks for a denied request', cause)
    await release(context, admitted, 0)
    return
  }
  announce(context, outcome)
  const ending = { ...COMPLETED, kind: 'failed', error } as const
  const own = { source: 'hook', cachedUsage: undefined, nanoDollars: outcome.hold?.amount ?? 0n } as const
  await settle(context, outcome, { ending, candidate: undefined, status: error.status, answer: undefined, own })
}

async function heldUnits(context: PipelineContext, admitted: Admitted): Promise<ReserveOutcome> {
  return await reservePriced(context, admitted, priceHookUnits(context, admitted))
}

/** Valid names and values of headers. */
export const HEADER_NAME = /^[!#$%&'*+.^_`|~\w-]+$/
export const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/

/** Headers of the gateway about the call, which no hook may set. */
const HEADER_OF_GATEWAY = /^(?:x-request-id|x-ratelimit-.*|x-should-retry|x-signalbox-(?!repaired$|schema$).*)$/

/**
 * Checks headers for the caller's answer.
 * @throws TypeError with the header.
 */
export function checkedHeaders(headers: unknown): string[] {
  if (!isJsonObject(headers)) throw new TypeError('headers must be an object')
  return Object.entries(headers).flatMap(([given, value]) => {
    const name = given.toLowerCase()
    if (!name.startsWith('x-') || HEADER_OF_GATEWAY.test(name) || !HEADER_NAME.test(name))
      throw new TypeError(`the header ${JSON.stringify(given)} cannot be set by a hook`)
    if (typeof value !== 'string' || !HEADER_VALUE.test(value))
      throw new TypeError(`the header ${JSON.stringify(given)} cannot be sent`)
    return [name, value]
  })
}
