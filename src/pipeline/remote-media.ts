import { Buffer } from 'node:buffer'
import { GatewayError } from '../core/errors.ts'
import type { CallerUrl } from '../endpoints/endpoint.ts'
import type { Candidate, Reserved } from './call-record.ts'
import type { PipelineContext } from './pipeline-context.ts'

/** Most media that are fetched for one request, all of them together, and at the same time. */
const MAX_FETCHED = 20
const MAX_FETCHED_BYTES = 32 * 1024 * 1024
const MAX_PARALLEL_FETCHES = 4

/**
 * The body of a request for a vendor that takes only bytes, with remote media replaced by data URLs. Returns the same body,
 * and no promise, if there is nothing to fetch.
 * @throws GatewayError `invalid_request` naming the address when it cannot be fetched or is not allowed, or when there are
 *   more of them than one request may have fetched.
 */
export function withRemoteMedia(
  context: PipelineContext,
  { endpoint, body }: Reserved,
  { vendor, model }: Candidate,
): Reserved['body'] | Promise<Reserved['body']> {
  const media = endpoint.remoteMedia?.(body, vendor, model)
  if (media === undefined) return body
  const tooMany = media.urls[MAX_FETCHED]
  if (tooMany !== undefined) throw refused(tooMany.param, `at most ${MAX_FETCHED} images may be URLs for this model`)
  return fetchAll(context, media.urls).then((dataUrls) => media.inline(dataUrls))
}

/** Data URLs in the order of the addresses. A few are fetched at a time; the first failure aborts the rest. */
async function fetchAll(context: PipelineContext, addresses: readonly CallerUrl[]): Promise<string[]> {
  const dataUrls: string[] = new Array(addresses.length)
  let next = 0
  let byteLength = 0
  const work = async (): Promise<void> => {
    while (next < addresses.length) {
      const index = next++
      const { url, param } = addresses[index]!
      const fetched = await context.fetchImage(url)
      if ('reason' in fetched) {
        next = addresses.length
        throw refused(param, fetched.reason)
      }
      byteLength += fetched.bytes.byteLength
      if (byteLength > MAX_FETCHED_BYTES) {
        next = addresses.length
        throw refused(param, `the images of a request may have ${MAX_FETCHED_BYTES} bytes together`)
      }
      dataUrls[index] = `data:${fetched.mediaType};base64,${Buffer.from(fetched.bytes).toString('base64')}`
    }
  }
  await Promise.all(Array.from({ length: MAX_PARALLEL_FETCHES }, work))
  return dataUrls
}

function refused(param: string, reason: string): GatewayError {
  return new GatewayError('invalid_request', { message: `${param}: ${reason}`, param })
}
