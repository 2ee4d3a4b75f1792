/** Number and size of what an account has stored. */
export interface StoredUsage {
  readonly count: number
  /** Size of its texts and contents, in bytes. */
  readonly byteLength: number
}

/** Default bounds of what one account may have stored, by kind, and how messages name the kind and what makes room. */
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
} as const

/** A kind of what accounts have stored. */
export type StoredKind = keyof typeof STORED_KINDS
