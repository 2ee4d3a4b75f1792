import type { Upload } from './upload.ts'

/** A file to keep: lines of JSON, one request each. */
export interface FileUpload {
  readonly file: Upload
  readonly purpose: 'batch'
  /** When it is deleted; after the retention of the gateway when absent. */
  readonly expires_after?: {
    readonly anchor: 'created_at'
    /** 3,600 to 2,592,000. */
    readonly seconds: number
  }
}

/** A file that the gateway keeps. Times in Unix seconds. */
export interface KeptFile {
  readonly id: string
  readonly object: 'file'
  readonly bytes: number
  readonly created_at: number
  readonly expires_at: number
  readonly filename: string
  readonly purpose: 'batch' | 'batch_output'
}

/** Which page of files or batches. */
export interface ListPage {
  /** Most objects of a page. */
  readonly limit?: number
  /** Id of the last object of the page before. */
  readonly after?: string
}

/** Which page of files. */
export interface FilePage extends ListPage {
  /** By creation; default `desc`. */
  readonly order?: 'asc' | 'desc'
  readonly purpose?: 'batch' | 'batch_output'
}

/** A page of objects. */
export interface ListOf<Item> {
  readonly object: 'list'
  readonly data: readonly Item[]
  readonly first_id: string | null
  readonly last_id: string | null
  readonly has_more: boolean
}

/** Requests to run later. */
export interface BatchRequest {
  readonly input_file_id: string
  /** Path of the requests: `/v1/chat/completions`. */
  readonly endpoint: string
  readonly completion_window: '24h'
  readonly metadata?: Readonly<Record<string, string>>
  /** When the files that it makes are deleted, 3,600 to 2,592,000 seconds after they were made. Default: when the gateway deletes them. */
  readonly output_expires_after?: { readonly anchor: 'created_at'; readonly seconds: number }
  /** Is told of the end. */
  readonly webhook_url?: string
}

/** A batch. Times in Unix seconds; null: not yet, or not at all. */
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
  /** What is wrong with lines of its file; nothing was sent then. */
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
  /** Decimal dollars, once it has ended and was charged. */
  readonly cost?: string
}

/** A file, or its id. A batch, or its id. */
export type ObjectReference = string | { readonly id: string }
