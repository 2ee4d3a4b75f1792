import { Buffer } from 'node:buffer'
import { GatewayError } from '../../core/errors.ts'
import { convertBody, protocolOfBody } from '../../endpoints/videos/convert-body.ts'
import { videoProtocolOf } from '../../endpoints/videos/video-protocols.ts'
import { checkRendering } from '../../endpoints/videos/video-rendering.ts'
import { mediaAddresses, type VideoRequest } from '../../endpoints/videos/video-request.ts'
import { asBuffer } from '../../wire/join-chunks.ts'
import type { ByteSpan } from '../../wire/json-cursor.ts'
import { findMembers } from '../../wire/json-spans.ts'
import { bearerHeaders } from '../shared/bearer-headers.ts'
import type { ErrorReader } from '../shared/openai-error.ts'
import type { VendorCall, VideoOperation, WireRequest } from '../vendor.ts'
import { acceptedTask, confirmsCancel, taskReport } from './video-report.ts'

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
