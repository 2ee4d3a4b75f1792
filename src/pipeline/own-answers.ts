import { Buffer } from 'node:buffer'
import type { GatewayError } from '../core/errors.ts'
import { isJsonObject } from '../core/json.ts'
import { isPending } from '../core/maybe-promise.ts'
import type { CompiledHook } from '../hooks/hook-table.ts'
import { release } from './admit.ts'
import { announce } from './announce.ts'
import type { Admitted, ParsedRequest, Reserved } from './call-record.ts'
import { HEADER_NAME, HEADER_VALUE } from './hook-headers.ts'
import { emit, type PipelineContext, reportFault } from './pipeline-context.ts'
import { priceHookUnits } from './pricing.ts'
import { type ReserveOutcome, reservePriced, StoredReplay } from './reserve.ts'
import { ownHead, respondReplay, respondWhole, streamTypeOf } from './respond.ts'
import { settle } from './settle.ts'
import type { CallEnding } from './vendor-response.ts'

const COMPLETED: CallEnding = { kind: 'completed', usage: undefined, estimatedUsage: undefined, error: undefined }

/** Checked answer of a hook to a request. */
export type HookSaid =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'raw'; readonly status: number; readonly headers: readonly string[]; readonly body: Buffer }

/** Headers that the gateway writes itself. */
const OWN_HEADER = /^(?:content-length|transfer-encoding|connection|keep-alive|upgrade|x-request-id|x-signalbox-.*)$/i

/**
 * Checks an answer of a hook.
 * @throws TypeError for an answer that cannot be sent.
 */
export function checkedAnswer(
  answer: unknown,
  { endpoint }: Pick<Admitted, 'endpoint'>,
  { body }: Pick<ParsedRequest, 'body'>,
): HookSaid {
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

function rawAnswer({ body, status = 200, headers = {} }: Readonly<Record<string, unknown>>): HookSaid {
  if (!(Number.isInteger(status) && (status as number) >= 200 && (status as number) <= 599))
    throw new TypeError('answer.status must be from 200 to 599')
  if (!isJsonObject(headers)) throw new TypeError('answer.headers must be an object')
  const list: string[] = []
  let hasType = false
  for (const [name, value] of Object.entries(headers)) {
    if (!HEADER_NAME.test(name) || OWN_HEADER.test(name) || typeof value !== 'string' || !HEADER_VALUE.test(value))
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
  { hook, said }: { readonly hook: CompiledHook; readonly said: HookSaid },
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
  const answer = outcome.claim && { status, headers, body }
  const firstByteMs = context.clock.now() - outcome.startedAtMs
  const own = { source: 'hook', cachedUsage: undefined, nanoDollars: outcome.hold?.amount ?? 0n } as const
  const settling = settle(context, outcome, {
    ending: COMPLETED,
    candidate: undefined,
    status,
    answer,
    own,
    firstByteMs,
  })
  const { costNanoDollars = 0n } = isPending(settling) ? await settling : settling
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
