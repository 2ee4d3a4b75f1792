import type { Message, MessageRequest } from './message-types.ts'
import type { Upload } from './upload.ts'

/** File to upload: lines of JSON, one request each. */
export interface FileUpload {
  readonly file: Upload
  readonly purpose: 'batch'
  /** Time of deletion. If omitted, the gateway's retention applies. */
  readonly expires_after?: {
    readonly anchor: 'created_at'
    /** Lifetime in seconds, from 3,600 to 2,592,000. */
    readonly seconds: number
  }
}

/** File stored by the gateway. Times in Unix seconds. */
export interface KeptFile {
  readonly id: string
  readonly object: 'file'
  readonly bytes: number
  readonly created_at: number
  readonly expires_at: number
  readonly filename: string
  readonly purpose: 'batch' | 'batch_output'
}

/** Selects a page of files or batches. */
export interface ListPage {
  /** Maximum number of objects per page. */
  readonly limit?: number
  /** Id of the last object of the previous page. */
  readonly after?: string
}

/** Selects a page of files. */
export interface FilePage extends ListPage {
  /** Order by creation time. Default `desc`. */
  readonly order?: 'asc' | 'desc'
  readonly purpose?: 'batch' | 'batch_output'
}

/** Page of a list. */
interface PageOf<Item> {
  readonly data: readonly Item[]
  readonly first_id: string | null
  readonly last_id: string | null
  readonly has_more: boolean
}

/** Page of a list in OpenAI's shape. */
export interface ListOf<Item> extends PageOf<Item> {
  readonly object: 'list'
}

/** Batch to submit. */
export interface BatchRequest {
  readonly input_file_id: string
  /** Path of the requests: `/v1/chat/completions`. */
  readonly endpoint: string
  readonly completion_window: '24h'
  readonly metadata?: Readonly<Record<string, string>>
  /**
   * Lifetime of the batch's output files, from 3,600 to 2,592,000 seconds after their creation. By default the gateway's retention
   * applies.
   */
  readonly output_expires_after?: { readonly anchor: 'created_at'; readonly seconds: number }
  /** Address that is called when the batch ends. */
  readonly webhook_url?: string
}

/** Batch. Times are in Unix seconds, or `null` if the event has not happened. */
export interface Batch {
  readonly id: string
  readonly object: 'batch'
  readonly endpoint: string
  readonly model: string | null
  readonly status:
    | 'validating'
    | 'failed'
    | 'in_progress'
    | 'finalizing'
    | 'completed'
    | 'expired'
    | 'cancelling'
    | 'cancelled'
  /** Faults in lines of its file, if any. Nothing was sent then. */
  readonly errors: {
    readonly object: 'list'
    readonly data: readonly {
      readonly code: string
      readonly line: number | null
      readonly message: string
      readonly param: string | null
    }[]
  } | null
  readonly input_file_id: string | null
  readonly output_file_id: string | null
  readonly error_file_id: string | null
  readonly completion_window: '24h'
  readonly created_at: number
  readonly expires_at: number
  readonly completed_at: number | null
  readonly failed_at: number | null
  readonly expired_at: number | null
  readonly cancelling_at: number | null
  readonly cancelled_at: number | null
  readonly request_counts: { readonly total: number; readonly completed: number; readonly failed: number }
  readonly usage: {
    readonly input_tokens: number
    readonly output_tokens: number
    readonly total_tokens: number
  } | null
  readonly metadata: Readonly<Record<string, string>> | null
  /** Cost in decimal dollars, after the batch has ended and was charged. */
  readonly cost?: string
}

/** File or batch, or its id. */
export type ObjectReference = string | { readonly id: string }

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
export interface MessageBatchList extends PageOf<MessageBatch> {}

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
