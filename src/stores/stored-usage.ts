/** Number and size of an account's stored data. */
export interface StoredUsage {
  readonly count: number
  /** Size of texts and contents, in bytes. */
  readonly byteLength: number
}

/** Default limits of one account's stored data by kind, with the name of the kind and the remedy for messages. */
export const STORED_KINDS = {
  idempotencyKeys: {
    count: 100_000,
    byteLength: 2 ** 30,
    label: 'Idempotency-Keys with their answers',
    remedy: 'Send no Idempotency-Key, or wait: keys are removed after 24 hours.',
  },
  responses: {
    count: 200_000,
    byteLength: 4 * 2 ** 30,
    label: 'stored responses',
    remedy: 'Delete some of them, or send store: false.',
  },
  conversations: {
    count: 10_000,
    byteLength: 2 ** 28,
    label: 'conversations with their items',
    remedy: 'Delete some of them, or some of their items.',
  },
  files: { count: 10_000, byteLength: 2 ** 31, label: 'files', remedy: 'Delete some of them.' },
  tasks: {
    count: 100_000,
    byteLength: 2 ** 30,
    label: 'videos, background responses and batches',
    remedy: 'Wait: they are removed some days after their end.',
  },
  webhookSecrets: {
    count: 10,
    byteLength: 2 ** 16,
    label: 'webhook secrets',
    remedy: 'Wait until the overlap of an older secret ends, or send an overlap of 0, which ends all of them.',
  },
} as const

/** Kind of stored data. */
export type StoredKind = keyof typeof STORED_KINDS
