import { Buffer } from 'node:buffer'
import { GatewayError } from '../core/errors.ts'
import type { CallerUrl } from '../endpoints/endpoint.ts'
import type { Candidate, Reserved } from './call-record.ts'
import type { PipelineContext } from './pipeline-context.ts'

/** Maximum per request: fetched media, their total bytes, and concurrent fetches. */
const MAX_FETCHED = 20
const MAX_FETCHED_BYTES = 32 * 1024 * 1024
const MAX_PARALLEL_FETCHES = 4

/**
 * Returns the body of a request for a vendor that accepts only bytes, with remote media replaced by data URLs. Returns the same
 * body, and no promise, if there is nothing to fetch.
 * @throws GatewayError `invalid_request` with the address if it cannot be fetched or is not allowed, or if there are too many of
 *   them; `rate_limited` and `overloaded` if there is no room for their bytes.
 */
export function withRemoteMedia(
  context: PipelineContext,
  call: Reserved,
  { vendor, model }: Candidate,
): Reserved['body'] | Promise<Reserved['body']> {
  const { endpoint, body } = call
  const media = endpoint.remoteMedia?.(body, vendor, model)
  if (media === undefined) return body
  const tooMany = media.urls[MAX_FETCHED]
  if (tooMany !== undefined) throw refused(tooMany.param, `at most ${MAX_FETCHED} images may be URLs for this model`)
  return fetchAll(context, call, media.urls).then((dataUrls) => media.inline(dataUrls))
}

/**
 * Returns data URLs in the order of the addresses. A few are fetched concurrently. The first failure ends the others, and so does
 * the end of the request or the disconnect of its caller. Bytes count while they arrive, until the answer begins.
 */
async function fetchAll(context: PipelineContext, call: Reserved, addresses: readonly CallerUrl[]): Promise<string[]> {
  const { accountId } = call.principal
  const control = new AbortController()
  const claim = context.fetchedBytes.claim(accountId)
  const fetches = { isUnsent: true, abort: () => control.abort(new GatewayError('client_closed_request')) }
  const dataUrls: string[] = new Array(addresses.length)
  let next = 0
  let byteLength = 0
  const work = async (): Promise<void> => {
    while (next < addresses.length) {
      const index = next++
      const { url, param } = addresses[index]!
      const onBytes = (bytes: number): void => {
        byteLength += bytes
        if (byteLength > MAX_FETCHED_BYTES)
          throw refused(param, `the images of a request may have ${MAX_FETCHED_BYTES} bytes together`)
        claim.add(bytes)
      }
      const fetched = await context.fetchImage(url, { accountId, signal: control.signal, onBytes })
      control.signal.throwIfAborted()
      if ('reason' in fetched) throw refused(param, fetched.reason, fetched.isBusy)
      dataUrls[index] = `data:${fetched.mediaType};base64,${Buffer.from(fetched.bytes).toString('base64')}`
    }
  }
  const release = (): void => {
    fetches.abort()
    claim.release()
  }
  const aborted = new Promise<never>((_, reject) => {
    control.signal.addEventListener('abort', () => reject(control.signal.reason))
  })
  if (!call.calls.add(fetches)) throw new GatewayError('client_closed_request')
  call.calls.holds(release)
  try {
    await Promise.race([Promise.all(Array.from({ length: MAX_PARALLEL_FETCHES }, work)), aborted])
    return dataUrls
  } catch (error) {
    release()
    throw error
  } finally {
    call.calls.delete(fetches)
  }
}

function refused(param: string, reason: string, isBusy = false): GatewayError {
  const details = { message: `${param}: ${reason}`, param }
  return isBusy
    ? new GatewayError('rate_limited', { ...details, retryAfterSeconds: 1 })
    : new GatewayError('invalid_request', details)
}
