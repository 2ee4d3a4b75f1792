import { type Clock, systemClock } from '../core/clock.ts'
import { firstHeader, mediaType } from '../wire/headers.ts'
import { checkPublicUrl } from './egress.ts'
import type { Transport } from './transport.ts'

/** Largest image that is fetched for a caller. */
export const MAX_IMAGE_BYTES = 20 * 1024 * 1024

const MAX_REDIRECTS = 3
/** Longest silence, and longest total time of one hop: a slow server must not keep a request open. */
const TIMEOUT_MS = 15_000
const TOTAL_TIMEOUT_MS = 30_000
const IMAGE_TYPES = new Set(['image/jpeg', 'image/png', 'image/gif', 'image/webp'])

/** An image, or the reason for the caller why it was not fetched. */
export type FetchedImage = { readonly bytes: Uint8Array; readonly mediaType: string } | { readonly reason: string }

/** Fetches an image that a caller named by URL. */
export type ImageFetcher = (url: string) => Promise<FetchedImage>

/**
 * Makes an {@link ImageFetcher}. Every redirect is checked like the first URL. `transport` must connect to public addresses
 * only, unless `allowPrivate` is set.
 */
export function imageFetcher(
  transport: Transport,
  options: { readonly allowPrivate?: boolean; readonly clock?: Clock } = {},
): ImageFetcher {
  const clock = options.clock ?? systemClock
  return async (text) => {
    let next = text
    for (let hop = 0; hop <= MAX_REDIRECTS; hop++) {
      const check = checkPublicUrl(next, options)
      if ('reason' in check) return check
      const answer = await fetchOnce(transport, check.url, clock)
      if (!('location' in answer)) return answer
      if (!URL.canParse(answer.location, check.url.href)) return { reason: 'redirects to something that is not a URL' }
      next = new URL(answer.location, check.url).href
    }
    return { reason: 'redirects too often' }
  }
}

type Hop = FetchedImage | { readonly location: string }

function fetchOnce(transport: Transport, url: URL, clock: Clock): Promise<Hop> {
  return new Promise((settle) => {
    const deadline = clock.schedule(TOTAL_TIMEOUT_MS, () => {
      resolve({ reason: 'took too long to fetch' })
      control.abort()
    })
    const resolve = (hop: Hop): void => {
      deadline.cancel()
      settle(hop)
    }
    const chunks: Uint8Array[] = []
    let byteLength = 0
    let type = ''
    const control = transport.send(
      {
        origin: url.origin,
        path: `${url.pathname}${url.search}`,
        method: 'GET',
        headers: ['accept', 'image/*', 'accept-encoding', 'identity'],
        body: null,
        firstByteTimeoutMs: TIMEOUT_MS,
        idleTimeoutMs: TIMEOUT_MS,
      },
      {
        onHead(status, headers) {
          type = mediaType(firstHeader(headers, 'content-type'))
          const location = firstHeader(headers, 'location')
          if (status >= 300 && status < 400 && location !== undefined) resolve({ location })
          else if (status !== 200) resolve({ reason: `answered with status ${status}` })
          else if (!IMAGE_TYPES.has(type)) resolve({ reason: 'is not a JPEG, PNG, GIF or WebP image' })
          else return
          control.abort()
        },
        onData(chunk) {
          byteLength += chunk.byteLength
          if (byteLength > MAX_IMAGE_BYTES) {
            resolve({ reason: `is larger than ${MAX_IMAGE_BYTES} bytes` })
            control.abort()
          } else chunks.push(chunk)
        },
        onEnd: () => resolve({ bytes: Buffer.concat(chunks), mediaType: type }),
        onFailure: () => resolve({ reason: 'could not be fetched' }),
      },
    )
  })
}
