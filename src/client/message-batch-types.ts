import type { Message, MessageRequest } from './message-types.ts'

/** Messages to ask for later (Anthropic API, "Message Batches"). */
export interface MessageBatchRequest {
  readonly requests: readonly {
    /** 1 to 64 letters, digits, `_` and `-`; another one for each request. */
    readonly custom_id: string
    /** All requests of a batch have one model. */
    readonly params: { readonly model: string } & MessageRequest
  }[]
  /** Is told of the end. */
  readonly webhook_url?: string
}

/** A batch of messages. Times as in `2026-11-23T16:45:21.015Z`; null: not yet, or not at all. */
export interface MessageBatch {
  readonly id: string
  readonly type: 'message_batch'
  readonly processing_status: 'in_progress' | 'canceling' | 'ended'
  /** All but `processing` are 0 until the end. */
  readonly request_counts: {
    readonly processing: number
    readonly succeeded: number
    readonly errored: number
    readonly canceled: number
    readonly expired: number
  }
  readonly created_at: string
  readonly ended_at: string | null
  readonly expires_at: string
  readonly cancel_initiated_at: string | null
  /** When its results were deleted. */
  readonly archived_at: string | null
  readonly results_url: string | null
  /** Decimal dollars, once it has ended and was charged. */
  readonly cost?: string
}

/** Which page of batches. */
export interface MessageBatchPage {
  /** Most batches of a page. */
  readonly limit?: number
  /** Id of the last batch of the page before. */
  readonly after_id?: string
  /** Id of the first batch of the page behind. */
  readonly before_id?: string
}

/** A page of batches, newest first. */
export interface MessageBatchList {
  readonly data: readonly MessageBatch[]
  readonly first_id: string | null
  readonly last_id: string | null
  readonly has_more: boolean
}

/** How one request of a batch went. */
export interface MessageBatchResult {
  readonly custom_id: string
  readonly result:
    | { readonly type: 'succeeded'; readonly message: Message }
    | {
        readonly type: 'errored'
        readonly error: {
          readonly type: 'error'
          readonly error: { readonly type: string; readonly message: string }
          readonly request_id?: string
        }
      }
    | { readonly type: 'canceled' | 'expired' }
}
