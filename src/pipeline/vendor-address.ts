import type { Credential } from '../core/credential.ts'
import type { Operation, WireRequest } from '../endpoints/operation.ts'
import { isStreamedBody, type TransportRequest } from '../transport/transport.ts'
import type { Vendor } from '../vendors/vendor.ts'
import type { PipelineContext } from './pipeline-context.ts'

/** Returns the path of a call, including the operator's query for all calls of the vendor. */
export function pathAt({ query }: Vendor, path: string): string {
  return query === undefined ? path : `${path}${path.includes('?') ? '&' : '?'}${query}`
}

/** Returns the headers of a call. The operator's headers for all calls of the vendor replace others of the same name. */
export function headersAt({ headers: own }: Vendor, headers: readonly string[]): readonly string[] {
  if (own === undefined) return headers
  const names = new Set(own.filter((_, place) => place % 2 === 0))
  const kept = headers.filter((_, place) => !names.has(headers[place - (place % 2)]!.toLowerCase()))
  return [...kept, ...own]
}

/**
 * Adds an expiring credential to a request, which contains its own otherwise.
 * @throws TypeError for a body that is read while it is sent, if the credential signs requests.
 */
export function withCredential(
  request: TransportRequest,
  credential: Credential | undefined,
  nowMs: number,
): TransportRequest {
  if (credential === undefined) return request
  const { header, token, sign, clockOffsetMs = 0 } = credential
  if (sign !== undefined) {
    const { method, origin, path, headers, body } = request
    if (isStreamedBody(body)) throw new TypeError('a body that is read while it is sent cannot be signed')
    const proof = sign({ method, origin, path, headers, body, nowMs: nowMs + clockOffsetMs })
    return { ...request, headers: [...headers, ...proof] }
  }
  const added = header === undefined ? ['authorization', `Bearer ${token}`] : [header, token]
  return { ...request, headers: [...request.headers, ...added] }
}

/** Creates the request of one call. @param firstByteMs Timeout for the response headers, in milliseconds. */
export function transportRequest(
  context: PipelineContext,
  vendor: Vendor,
  wire: WireRequest,
  operation: Operation,
  firstByteMs = context.timeouts.firstByteMs,
): TransportRequest {
  const { idleMs, totalMs } = context.timeouts
  return {
    origin: vendor.origin,
    path: pathAt(vendor, wire.path),
    method: 'POST',
    headers: headersAt(vendor, wire.headers),
    body: wire.body,
    firstByteTimeoutMs: firstByteMs,
    idleTimeoutMs: isPatient(vendor, operation) ? totalMs : idleMs,
    egress: vendor.egress,
  }
}

/** Whether a call may be silent for a long time: a model that hides its reasoning sends nothing meanwhile. */
export function isPatient(vendor: Vendor, { reasonsUnseen }: Operation): boolean {
  return reasonsUnseen === true || vendor.hasLongSilences === true
}
