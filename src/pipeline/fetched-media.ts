import { type Clock, countdown, systemClock } from '../core/clock.ts'
import { GatewayError } from '../core/errors.ts'
import type { HeldBytes } from '../core/memory-use.ts'
import { checkPublicUrl } from '../transport/egress.ts'
import type { NameResolver } from '../transport/name-resolver.ts'
import type { Transport } from '../transport/transport.ts'
import { firstHeader, mediaType } from '../wire/headers.ts'

/** Bytes of fetched media that count for one request. */
export interface FetchedBytesClaim {
  /**
   * Counts bytes that have arrived.
   * @throws GatewayError `rate_limited` above the limit of the account, and `overloaded` above that of the process.
   */
  add(bytes: number): void
  /** Ends the claim. Its bytes no longer count; later calls have no effect. */
  release(): void
}

/** Counts the bytes of media that are fetched for requests in progress, by account and for the process. */
export class FetchedBytes {
  readonly #maxPerAccount: number
  readonly #heldBytes: HeldBytes
  readonly #byAccount = new Map<string, number>()

  constructor(maxPerAccount: number, heldBytes: HeldBytes) {
    this.#maxPerAccount = maxPerAccount
    this.#heldBytes = heldBytes
  }

  /** Starts counting for a request of an account. */
  claim(accountId: string): FetchedBytesClaim {
    let claimed = 0
    let isReleased = false
    const change = (bytes: number): void => {
      if (isReleased) return
      const sum = (this.#byAccount.get(accountId) ?? 0) + bytes
      if (bytes > 0 && sum > this.#maxPerAccount)
        throw new GatewayError('rate_limited', {
          message: `The media that are fetched for the requests of this account have more than ${this.#maxPerAccount} bytes together. Wait until one of them is answered, or send smaller media.`,
          retryAfterSeconds: 1,
        })
      this.#heldBytes.add(bytes)
      claimed += bytes
      if (sum > 0) this.#byAccount.set(accountId, sum)
      else this.#byAccount.delete(accountId)
    }
    return {
      add: change,
      release() {
        change(-claimed)
        isReleased = true
      },
    }
  }
}

/** Maximum size of an image that is fetched for a caller, in bytes. */
export const MAX_IMAGE_BYTES = 20 * 1024 * 1024

const MAX_REDIRECTS = 3
/** Maximum wait for the response headers of one hop. */
const FIRST_BYTE_TIMEOUT_MS = 15_000
/** Maximum silence between two chunks: a host that sends nearly everything and stops must not keep memory occupied. */
const IDLE_TIMEOUT_MS = 5_000
/** Maximum total time of one image, with its redirects. */
const TOTAL_TIMEOUT_MS = 30_000
/** Minimum memory of a chunk. A host could send an image in chunks of one byte. */
const CHUNK_BYTES = 256
const IMAGE_TYPES = new Set(['image/jpeg', 'image/png', 'image/gif', 'image/webp'])

/** Image, or the caller's reason why it was not fetched. `isBusy` is whether it can be fetched later. */
export type FetchedImage =
  | { readonly bytes: Uint8Array; readonly mediaType: string }
  | { readonly reason: string; readonly isBusy?: boolean }

/** Owner and limits of a fetch. */
export interface ImageFetch {
  /** Account of the caller, whose pending host names are limited. */
  readonly accountId?: string
  /** Ends the fetch. */
  readonly signal?: AbortSignal
  /** Called with the length of each chunk before it is stored. If it throws, the fetch ends and rejects with that error. */
  onBytes?(byteLength: number): void
}

/** Fetches an image that a caller named by URL. */
export type ImageFetcher = (url: string, fetch?: ImageFetch) => Promise<FetchedImage>

const ABORTED = { reason: 'was not fetched' }

/**
 * Creates an {@link ImageFetcher}. Every redirect is checked like the first URL. `names` must refuse private addresses and
 * resolve the names of `transport`, unless `allowPrivate` is set.
 */
export function imageFetcher(
  transport: Transport,
  options: { readonly names: NameResolver; readonly allowPrivate?: boolean; readonly clock?: Clock },
): ImageFetcher {
  const { names, clock = systemClock } = options
  return async (text, fetch = {}) => {
    const leftMs = countdown(clock, TOTAL_TIMEOUT_MS)
    let next = text
    for (let hop = 0; hop <= MAX_REDIRECTS; hop++) {
      const check = checkPublicUrl(next, options)
      if ('reason' in check) return check
      try {
        await names.resolve(check.url.hostname, fetch.accountId)
      } catch (error) {
        return { reason: 'could not be fetched', isBusy: (error as NodeJS.ErrnoException).code === 'EBUSY' }
      }
      if (fetch.signal?.aborted === true) return ABORTED
      const answer = await fetchOnce(transport, check.url, { ...fetch, clock, leftMs: leftMs() })
      if (!('location' in answer)) return answer
      if (!URL.canParse(answer.location, check.url.href)) return { reason: 'redirects to something that is not a URL' }
      next = new URL(answer.location, check.url).href
    }
    return { reason: 'redirects too often' }
  }
}

type Hop = FetchedImage | { readonly location: string }

interface HopFetch extends ImageFetch {
  readonly clock: Clock
  readonly leftMs: number
}

function fetchOnce(transport: Transport, url: URL, { clock, leftMs, signal, onBytes }: HopFetch): Promise<Hop> {
  return new Promise((settle, reject) => {
    const end = (hop: Hop): void => {
      resolve(hop)
      control.abort()
    }
    const abort = (): void => end(ABORTED)
    const deadline = clock.schedule(leftMs, () => end({ reason: 'took too long to fetch' }))
    signal?.addEventListener('abort', abort)
    const release = (): void => {
      deadline.cancel()
      signal?.removeEventListener('abort', abort)
    }
    const resolve = (hop: Hop): void => {
      release()
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
        firstByteTimeoutMs: FIRST_BYTE_TIMEOUT_MS,
        idleTimeoutMs: IDLE_TIMEOUT_MS,
      },
      {
        onHead(status, headers) {
          type = mediaType(firstHeader(headers, 'content-type'))
          const location = firstHeader(headers, 'location')
          if (status >= 300 && status < 400 && location !== undefined) end({ location })
          else if (status !== 200) end({ reason: `answered with status ${status}` })
          else if (!IMAGE_TYPES.has(type)) end({ reason: 'is not a JPEG, PNG, GIF or WebP image' })
        },
        onData(chunk) {
          byteLength += chunk.byteLength
          if (byteLength > MAX_IMAGE_BYTES) return end({ reason: `is larger than ${MAX_IMAGE_BYTES} bytes` })
          try {
            onBytes?.(Math.max(chunk.byteLength, CHUNK_BYTES))
            chunks.push(chunk)
          } catch (error) {
            release()
            reject(error)
            control.abort()
          }
        },
        onEnd: () => resolve({ bytes: Buffer.concat(chunks), mediaType: type }),
        onFailure: () => resolve({ reason: 'could not be fetched' }),
      },
    )
  })
}
