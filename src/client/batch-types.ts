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

export interface ListOf<Item> {
  readonly object: 'list'
  readonly data: readonly Item[]
  readonly first_id: string | null
  readonly last_id: string | null
  readonly has_more: boolean
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
