import { checkMembers, type MemberNames } from '../core/known-members.ts'
import type { BatchSettings } from '../pipeline/pipeline-context.ts'
import type { BlobStore } from '../stores/blob-store.ts'
import type { GatewayStore } from '../stores/gateway-store.ts'

/** Options of files and batches. */
export interface BatchOptions {
  /** Store for the bytes of files: `directoryBlobs`, or one of the host. Defaults to the gateway's store. */
  readonly blobs?: BlobStore | undefined
  /** Maximum size of a file in bytes. Default 209,715,200 (200 MiB). */
  readonly maxFileBytes?: number | undefined
  /** How many days a file is kept unless its caller requests less. At least 1; default 30. */
  readonly retentionDays?: number | undefined
  /** Maximum number of requests in one batch. Default 50,000. */
  readonly maxRequests?: number | undefined
  /** Maximum number of unfinished batches of an account. Default 10. */
  readonly maxOpenBatches?: number | undefined
  /** Maximum number of requests of one batch that a process runs at the same time, within the caller's limits. Default 8. */
  readonly requestsAtOnce?: number | undefined
  /**
   * Whether to submit batches to the batch API of vendors that have one, at batch prices. If false, requests are sent as ordinary
   * calls. Default true.
   */
  readonly native?: boolean | undefined
}

const BATCH_OPTIONS = {
  blobs: true,
  maxFileBytes: true,
  retentionDays: true,
  maxRequests: true,
  maxOpenBatches: true,
  requestsAtOnce: true,
  native: true,
} satisfies MemberNames<BatchOptions>

const DAY_MS = 24 * 60 * 60_000

/**
 * Returns the settings of these options, or `undefined` if there are neither files nor batches.
 * @throws TypeError naming the option, or if the store does not support batches.
 */
export function batchSettingsOf(options: BatchOptions | undefined, store: GatewayStore): BatchSettings | undefined {
  if (options === undefined) return undefined
  if (typeof options !== 'object' || options === null)
    throw new TypeError('createGateway: batches must be an object; {} has all defaults')
  checkMembers(options, BATCH_OPTIONS, 'createGateway', 'batches')
  const { files, batches: outcomes } = store
  const blobs = options.blobs ?? store.blobs
  if (files === undefined || outcomes === undefined || blobs === undefined)
    throw new TypeError('createGateway: batches need a store that has files, blobs and batches')
  return {
    files,
    blobs,
    outcomes,
    maxFileBytes: wholeNumber(options, 'maxFileBytes', 200 * 2 ** 20),
    retentionMs: wholeNumber(options, 'retentionDays', 30) * DAY_MS,
    maxRequests: wholeNumber(options, 'maxRequests', 50_000),
    maxOpen: wholeNumber(options, 'maxOpenBatches', 10),
    requestsAtOnce: wholeNumber(options, 'requestsAtOnce', 8),
    isNative: flag(options, 'native', true),
  }
}

function flag(options: BatchOptions, name: 'native', usual: boolean): boolean {
  const value = options[name] ?? usual
  if (typeof value !== 'boolean') throw new TypeError(`createGateway: batches.${name} must be true or false`)
  return value
}

function wholeNumber(
  options: BatchOptions,
  name: Exclude<keyof BatchOptions, 'blobs' | 'native'>,
  usual: number,
): number {
  const value = options[name] ?? usual
  if (!Number.isSafeInteger(value) || value < 1)
    throw new TypeError(`createGateway: batches.${name} must be a whole number of at least 1`)
  return value
}
