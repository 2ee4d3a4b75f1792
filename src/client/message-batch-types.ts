import type { Message, MessageRequest } from './message-types.ts'

/** Batch of messages to submit (Anthropic API, "Message Batches"). */
export interface MessageBatchRequest {
  readonly requests: readonly {
    /** Id with 1 to 64 letters, digits, `_` and `-`, unique in the batch. */
    readonly custom_id: string
    /** All requests of a batch have one model. */
    readonly params: { readonly model: string } & MessageRequest
  }[]
  /** Address that is called when the batch ends. */
  readonly webhook_url?: string
}

/** Batch of messages. Times have the form `2026-11-23T16:45:21.015Z`, or are `null` if the event has not happened. */
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
  /** Time at which its results were deleted. */
  readonly archived_at: string | null
  readonly results_url: string | null
  /** Cost in decimal dollars, after the batch has ended and was charged. */
  readonly cost?: string
}

/** Selects a page of batches. */
export interface MessageBatchPage {
  /** Maximum number of batches per page. */
  readonly limit?: number
  /** Id of the last batch of the previous page. */
  readonly after_id?: string
  /** Id of the first batch of the next page. */
  readonly before_id?: string
}

/** A page of batches, newest first. */
export interface MessageBatchList {
  readonly data: readonly MessageBatch[]
  readonly first_id: string | null
  readonly last_id: string | null
  readonly has_more: boolean
}

/** Result of one request of a batch. */
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
