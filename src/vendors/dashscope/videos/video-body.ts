import { Buffer } from 'node:buffer'
import { videoProtocolOf } from '../../../endpoints/videos/video-protocols.ts'
import type { VideoRequest } from '../../../endpoints/videos/video-request.ts'
import { asBuffer } from '../../shared/json-bytes.ts'
import type { VendorCall } from '../../vendor.ts'
import { uniqueMembers } from '../unique-members.ts'
import { fallbackRequest, isFallback } from './fallback-request.ts'

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
  const members = bytes === undefined ? undefined : uniqueMembers(bytes)
  const own = (name: 'input' | 'parameters'): Buffer | undefined => {
    const span = request[name] === call.request[name] ? members?.get(name) : undefined
    return span === undefined ? undefined : bytes?.subarray(span.start, span.end)
  }
  const filled = videoProtocolOf(call.model).fillIn(request, call.model)
  return {
    request,
    body: [
      Buffer.from(`{"model":${JSON.stringify(call.model.upstream)},"input":`),
      own('input') ?? Buffer.from(JSON.stringify(request.input)),
      Buffer.from(',"parameters":'),
      ...parametersBytes(request.parameters ?? {}, filled, own('parameters')),
      Buffer.from('}'),
    ],
  }
}

function parametersBytes(
  given: Readonly<Record<string, unknown>>,
  filled: Readonly<Record<string, unknown>>,
  bytes: Buffer | undefined,
): Uint8Array[] {
  const changed = Object.entries(filled).filter(([name, value]) => given[name] !== value)
  if (bytes !== undefined && changed.length === 0) return [bytes]
  const canAppend = Object.keys(given).length > 0 && changed.every(([name]) => given[name] === undefined)
  if (bytes === undefined || !canAppend) return [Buffer.from(JSON.stringify(filled))]
  const added = changed.map(([name, value]) => `,${JSON.stringify(name)}:${JSON.stringify(value)}`)
  return [bytes.subarray(0, bytes.length - 1), Buffer.from(`${added.join('')}}`)]
}
