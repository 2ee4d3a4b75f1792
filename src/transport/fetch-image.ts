import { firstHeader, mediaType } from '../wire/headers.ts'
import { checkPublicUrl } from './egress.ts'
import type { Transport } from './transport.ts'

/** Largest image that is fetched for a caller. */
export const MAX_IMAGE_BYTES = 20 * 1024 * 1024

const MAX_REDIRECTS = 3
const TIMEOUT_MS = 15_000
const IMAGE_TYPES = new Set(['image/jpeg', 'image/png', 'image/gif', 'image/webp'])

/** An image, or the reason why it was not fetched; the reason is for the caller. */
export type FetchedImage = { readonly bytes: Uint8Array; readonly mediaType: string } | { readonly reason: string }

/** Fetches an image that a caller named by URL. */
export type ImageFetcher = (url: string) => Promise<FetchedImage>

/**
 * Makes an {@link ImageFetcher}. Every hop of a redirect is judged like the first URL. `transport` must connect to public
 * addresses only, unless `allowPrivate` is set.
 */
export function imageFetcher(transport: Transport, options: { readonly allowPrivate?: boolean } = {}): ImageFetcher {
  return async (text) => {
    let next = text
    for (let hop = 0; hop <= MAX_REDIRECTS; hop++) {
      const check = checkPublicUrl(next, options)
      if ('reason' in check) return check
      const answer = await fetchOnce(transport, check.url)
      if ('reason' in answer || 'bytes' in answer) return answer
      next = new URL(answer.location, check.url).href
    }
    return { reason: 'redirects too often' }
  }
}

function fetchOnce(transport: Transport, url: URL): Promise<FetchedImage | { readonly location: string }> {
  return new Promise((resolve) => {
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
