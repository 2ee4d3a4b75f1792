import { Buffer } from 'node:buffer'
import { videoProtocolOf } from '../../../endpoints/videos/video-protocols.ts'
import type { VideoRequest } from '../../../endpoints/videos/video-request.ts'
import { asBuffer, type ByteSpan } from '../../shared/json-bytes.ts'
import type { VendorCall } from '../../vendor.ts'
import { memberSpans } from '../member-spans.ts'
import { fallbackRequest, isFallback } from './fallback-request.ts'

/** What of a body belongs to the vendor. */
const PARTS = ['input', 'parameters'] as const

/** The request for the vendor, and its bytes. */
export interface VideoBody {
  readonly request: VideoRequest
  readonly body: readonly Uint8Array[]
}

/**
 * The body for the vendor: its model id, the caller's `input`, and `parameters` with what decides the bill filled in. Values
 * are the caller's own bytes wherever those can be read in one way only.
 * @throws GatewayError `unsupported_parameter` when the model stands in for another and cannot do what was asked;
 *   `model_not_configured` when it names no known protocol.
 */
export function videoBody(call: VendorCall<VideoRequest>): VideoBody {
  const request = isFallback(call) ? fallbackRequest(call) : call.request
  const bytes = call.bytes === undefined ? undefined : asBuffer(call.bytes)
  // They say what `call.request` says, because no name stands twice in them.
  const spans = bytes && memberSpans(bytes, PARTS)
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

const PARAMETERS = Buffer.from(',"parameters":')
const END = Buffer.from('}')
