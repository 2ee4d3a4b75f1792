import { Buffer } from 'node:buffer'
import { ERROR_TABLE, GatewayError } from '../../core/errors.ts'
import { isJsonObject, isSet, nonEmptyText, objectOf, parseVendorJson } from '../../core/json.ts'
import { hasAtMost } from '../../endpoints/character-count.ts'
import { readIntent } from '../../endpoints/videos/read-intent.ts'
import {
  checkRendering,
  readRenderedSize,
  type VideoModelFacts,
  type VideoProtocolName,
} from '../../endpoints/videos/video-protocol.ts'
import { videoProtocolOf } from '../../endpoints/videos/video-protocols.ts'
import { mediaAddresses, type VideoParts, type VideoRequest } from '../../endpoints/videos/video-request.ts'
import { asBuffer } from '../../wire/chunks.ts'
import type { ByteSpan } from '../../wire/json-cursor.ts'
import { findMembers } from '../../wire/json-edits.ts'
import type { ErrorReader } from '../shared/openai-error.ts'
import { bearerHeaders, redactCredentials } from '../shared/vendor-options.ts'
import type { AcceptedTask, TaskReport, VendorCall, VideoOperation, WireAnswer, WireRequest } from '../vendor.ts'

/** Members of a body that belong to the vendor. */
const PARTS = ['input', 'parameters'] as const
const PARAMETERS = Buffer.from(',"parameters":')
const END = Buffer.from('}')
const NO_FIELDS: readonly string[] = []

/** Top-level fields for the gateway that are not sent to the vendor. */
const GATEWAY_FIELDS: ReadonlySet<string> = new Set([
  'model',
  'duration',
  'resolution',
  'aspect_ratio',
  'input',
  'parameters',
  'webhook_url',
])

/**
 * Video by DashScope's native API (Wan, video synthesis and task query): submitted, then polled.
 * @param basePath Path up to and including the version: `/api/v1`.
 * @param apiKeys Keys of the operator, removed from the vendor's texts.
 */
export function videoOperation(
  basePath: string,
  apiKeys: readonly string[],
  errors: Pick<ErrorReader, 'fromStream'>,
): VideoOperation {
  return {
    toWire: (call) => submission(call, `${basePath}/services/aigc/video-generation/video-synthesis`),
    accepted: acceptedTask,
    read: (upstreamId, apiKey) => ({
      method: 'GET',
      path: taskPath(basePath, upstreamId),
      headers: taskHeaders(apiKey),
    }),
    report: (answer) => taskReport(answer, apiKeys, errors),
    cancel: (upstreamId, apiKey) => ({
      method: 'POST',
      path: `${taskPath(basePath, upstreamId)}/cancel`,
      headers: taskHeaders(apiKey),
    }),
    confirmsCancel,
    pollIntervalMs: 15_000,
    // The vendor allows 20 queries per second and account. A second overlaps at most five windows.
    pollBudget: { takes: 4, windowMs: 250 },
  }
}

function submission(call: VendorCall<VideoRequest>, path: string): WireRequest {
  const { request, body } = videoBody(call)
  const headers = [...bearerHeaders(call.apiKey, 'application/json')]
  headers.push('x-dashscope-async', 'enable')
  // The vendor resolves its uploaded files only with this header.
  if (mediaAddresses(request.input).some(({ url }) => /^oss:/i.test(url))) {
    headers.push('x-dashscope-ossresourceresolve', 'enable')
  }
  return { path, headers, body, dropped: furtherFields(call.request) }
}

function furtherFields(request: VideoRequest): readonly string[] {
  let further: string[] | undefined
  for (const name of Object.keys(request)) {
    if (GATEWAY_FIELDS.has(name)) continue
    further ??= []
    further.push(name)
  }
  return further ?? NO_FIELDS
}

function taskPath(basePath: string, upstreamId: string): string {
  return `${basePath}/tasks/${encodeURIComponent(upstreamId)}`
}

function taskHeaders(apiKey: string): readonly string[] {
  const headers = ['accept', 'application/json', 'accept-encoding', 'identity']
  if (apiKey !== '') headers.push('authorization', `Bearer ${apiKey}`)
  return headers
}

/** The request for the vendor, and its bytes. */
interface VideoBody {
  readonly request: VideoRequest
  readonly body: readonly Uint8Array[]
}

/**
 * Builds the body for the vendor: its model id, the caller's `input`, and `parameters` with the fields that decide the bill. Values
 * are the caller's own bytes if those are unambiguous.
 * @throws GatewayError `unsupported_parameter` if the model is a fallback that does not support the request;
 *   `model_not_configured` if it names no known protocol.
 */
function videoBody(call: VendorCall<VideoRequest>): VideoBody {
  const request = isFallback(call) ? fallbackRequest(call) : call.request
  const bytes = call.bytes === undefined ? undefined : asBuffer(call.bytes)
  // The bytes equal `call.request`, because they repeat no name.
  const spans = bytes && findMembers(bytes, PARTS)
  const input = request.input === call.request.input ? cut(bytes, spans?.input) : undefined
  const parameters = request.parameters === call.request.parameters ? cut(bytes, spans?.parameters) : undefined
  const filled = videoProtocolOf(call.model).fillIn(request, call.model)
  const head = `{"model":${JSON.stringify(call.model.upstream)},"input":`
  const body = input === undefined ? [Buffer.from(head + JSON.stringify(request.input))] : [Buffer.from(head), input]
  return { request, body: appendParameters(body, request.parameters ?? {}, filled, parameters) }
}

function cut(bytes: Buffer | undefined, span: ByteSpan | undefined): Buffer | undefined {
  return span && bytes?.subarray(span.start, span.end)
}

function appendParameters(
  body: Buffer[],
  given: Readonly<Record<string, unknown>>,
  filled: Readonly<Record<string, unknown>>,
  bytes: Buffer | undefined,
): Buffer[] {
  let added = ''
  let isOverwritten = false
  for (const name of Object.keys(filled)) {
    const value = filled[name]
    if (given[name] === value) continue
    if (given[name] !== undefined) isOverwritten = true
    added += `,${JSON.stringify(name)}:${JSON.stringify(value)}`
  }
  if (bytes !== undefined && added === '') body.push(PARAMETERS, bytes, END)
  else if (bytes === undefined || isOverwritten || Object.keys(given).length === 0)
    body.push(Buffer.from(`,"parameters":${JSON.stringify(filled)}}`))
  else body.push(PARAMETERS, bytes.subarray(0, bytes.length - 1), Buffer.from(`${added}}}`))
  return body
}

/** Whether this model is a fallback for the requested one. */
function isFallback({ request, model }: VendorCall<VideoRequest>): boolean {
  return ![model.id, model.upstream, ...model.aliases].includes(request.model)
}

/**
 * Returns the request in the fallback's protocol. A body of another protocol is converted if nothing is lost.
 * @throws GatewayError `unsupported_parameter` naming the unsupported field.
 */
function fallbackRequest({ request, model }: VendorCall<VideoRequest>): VideoRequest {
  const protocol = videoProtocolOf(model)
  const { body, lost } = convertBody(request, protocolOfBody(request) ?? protocol.name, model)
  if (lost.length > 0) {
    throw new GatewayError('unsupported_parameter', {
      message: `${lost.join(', ')}: the model ${model.id} cannot do this.`,
      param: lost[0],
    })
  }
  try {
    protocol.check(body, model)
    checkRendering(body, model, protocol.holdsReferenceVideo(body))
  } catch (cause) {
    // A missing field concerns only this model: the request was valid for the requested one.
    const { message, param } = GatewayError.from(cause)
    throw new GatewayError('unsupported_parameter', { message, param, cause })
  }
  return body
}

type Status = TaskReport['status']

/** Values of `task_status` (DashScope, task query). Only the vendor's SDKs mention SUSPENDED; both spellings of cancelled occur. */
const STATUSES: ReadonlyMap<unknown, Status> = new Map<unknown, Status>([
  ['PENDING', 'queued'],
  ['RUNNING', 'in_progress'],
  ['SUSPENDED', 'in_progress'],
  ['SUCCEEDED', 'completed'],
  ['FAILED', 'failed'],
  ['CANCELED', 'cancelled'],
  ['CANCELLED', 'cancelled'],
  ['UNKNOWN', 'unknown'],
])

// Task ids are UUIDs. The id becomes part of a path.
const TASK_ID = /^[A-Za-z0-9][\w.:-]{0,199}$/

/** Reads the answer to a submission. Returns `undefined` if it names no task. */
function acceptedTask(answer: WireAnswer): AcceptedTask | undefined {
  const output = outputOf(bodyOf(answer))
  const taskId = output?.['task_id']
  return typeof taskId === 'string' && TASK_ID.test(taskId) ? { upstreamId: taskId, output } : undefined
}

/** Whether the vendor confirms a cancellation: an object with the request id, and without a code, whatever the status. */
function confirmsCancel(answer: WireAnswer): boolean {
  const body = bodyOf(answer)
  return body !== undefined && nonEmptyText(body['code']) === undefined
}

/** Error for the caller if the operator's account is at fault, as for every other call. */
const HIDDEN = { code: 'upstream_unavailable', message: ERROR_TABLE.upstream_unavailable.message } as const

/**
 * Reads a task record. Returns `undefined` for an unknown status, so that the answer is ignored.
 * @param apiKeys Removed from the vendor's texts.
 */
function taskReport(
  answer: WireAnswer,
  apiKeys: readonly string[],
  errors: Pick<ErrorReader, 'fromStream'>,
): TaskReport | undefined {
  const body = bodyOf(answer)
  const output = outputOf(body)
  const status = STATUSES.get(output?.['task_status'])
  if (body === undefined || output === undefined || status === undefined) return undefined
  const usage = objectOf(body['usage'])
  const seconds = billedSeconds(usage)
  const { video_url: contentUrl, seed, message } = output
  const error = status === 'failed' ? taskError(output, body, apiKeys) : undefined
  const failure = error && errors.fromStream(error)
  const accountProblem = failure?.kind === 'operator' ? failure : undefined
  const shown = typeof message === 'string' ? { ...output, message: redactCredentials(message, apiKeys) } : output
  return {
    status,
    output: accountProblem === undefined ? shown : { ...output, ...HIDDEN },
    usage: body['usage'],
    billed: seconds === undefined ? undefined : { videoSeconds: seconds },
    variant: renderedResolution(usage),
    contentUrl: typeof contentUrl === 'string' && contentUrl !== '' ? contentUrl : undefined,
    facts: Number.isInteger(seed) ? { seed: Number(seed) } : undefined,
    error: accountProblem === undefined ? error : HIDDEN,
    accountProblem,
  }
}

/** Code and text are in `output`, or at the top. */
function taskError(
  output: Record<string, unknown>,
  body: Record<string, unknown>,
  apiKeys: readonly string[],
): NonNullable<TaskReport['error']> {
  const code = nonEmptyText(output['code']) ?? nonEmptyText(body['code']) ?? 'task_failed'
  const message =
    nonEmptyText(output['message']) ?? nonEmptyText(body['message']) ?? 'The vendor could not render the video.'
  return { code, message: redactCredentials(message, apiKeys) }
}

function bodyOf(answer: WireAnswer): Record<string, unknown> | undefined {
  const body = parseVendorJson(asBuffer(answer.body).toString('utf8'))
  return isJsonObject(body) ? body : undefined
}

function outputOf(body: Record<string, unknown> | undefined): Record<string, unknown> | undefined {
  const output = body?.['output']
  return isJsonObject(output) ? output : undefined
}

/**
 * Returns the billed seconds of a task record (DashScope, task query of video synthesis): `duration`, which includes the seconds of
 * reference videos; else output and input seconds together; else `video_duration` of older models. Returns `undefined` if all are
 * absent, and NaN if a value is not a number, so that it does not count as absent.
 */
function billedSeconds(usage: Readonly<Record<string, unknown>>): number | undefined {
  const { duration, output_video_duration: made, input_video_duration: taken, video_duration: older } = usage
  if (isSet(duration)) return secondsOf(duration)
  if (isSet(made)) return secondsOf(made) + (isSet(taken) ? secondsOf(taken) : 0)
  return isSet(older) ? secondsOf(older) : undefined
}

function secondsOf(value: unknown): number {
  return typeof value === 'number' ? value : Number.NaN
}

/**
 * Returns the rendered tier of a task record, as callers write it: from `SR`, a number or a string, else from the pixels in `size`
 * or `video_ratio`.
 */
function renderedResolution(usage: Readonly<Record<string, unknown>>): string | undefined {
  const { SR: tier } = usage
  if (typeof tier === 'number' || typeof tier === 'string') {
    const lines = /^\s*([1-9]\d{0,4})\s*p?\s*$/i.exec(String(tier))?.[1]
    if (lines !== undefined) return `${lines}p`
  }
  for (const size of [usage['size'], usage['video_ratio']]) {
    const geometry = typeof size === 'string' ? readRenderedSize(size) : undefined
    if (geometry !== undefined) return geometry.resolution
  }
  return undefined
}

/** Members of only one layout, strongest evidence first: 2.7 accepts `shot_type` too, and ignores it. */
const MARKS: readonly (readonly [section: keyof VideoParts, name: string, protocol: VideoProtocolName])[] = [
  ['input', 'img_url', 'wan-2-6'],
  ['input', 'reference_urls', 'wan-2-6'],
  ['input', 'reference_video_urls', 'wan-2-6'],
  ['input', 'media', 'wan-2-7'],
  ['parameters', 'size', 'wan-2-6'],
  ['parameters', 'ratio', 'wan-2-7'],
  ['parameters', 'resolution', 'wan-2-7'],
  ['parameters', 'shot_type', 'wan-2-6'],
  ['parameters', 'audio', 'wan-2-6'],
]

/** Returns the layout of a body, or `undefined` if both layouts fit. */
export function protocolOfBody(parts: VideoParts): VideoProtocolName | undefined {
  return MARKS.find(([section, name]) => isSet(parts[section]?.[name]))?.[2]
}

/** A body for another model. */
export interface ConvertedBody {
  readonly body: VideoRequest
  /** Fields of the old body that could not be converted: `parameters.shot_type`. Empty if nothing was lost. */
  readonly lost: readonly string[]
}

/**
 * Converts a parsed request for a model of another protocol: media, geometry and the prompt's names of references. For a model of
 * the same protocol, the body stays unchanged and unsupported fields are listed. The vendor chooses absent members in both
 * protocols.
 * @throws GatewayError `model_not_configured` if the model names no known protocol.
 */
export function convertBody(request: VideoRequest, from: VideoProtocolName, to: VideoModelFacts): ConvertedBody {
  const target = videoProtocolOf(to)
  const read = readIntent(request, from)
  const written = target.writeIntent(read.intent, to)
  const impossible = written.impossible.map((field) => read.origins.get(field) ?? field)
  if (target.name === from) return { body: request, lost: impossible }
  const { input, parameters } = written
  const prompt = input['prompt']
  const isCut = typeof prompt === 'string' && !hasAtMost(prompt, target.maxPromptCharacters)
  const lost = new Set([...read.unread, ...impossible, ...(isCut ? ['input.prompt'] : [])])
  return { body: { ...request, input, parameters }, lost: [...lost] }
}
