import type { ResponsesEffort } from '../endpoints/responses/responses-request.ts'
import type { ListOf, ListPage, ObjectReference } from './batch-types.ts'
import type { CacheBreakpoint } from './message-types.ts'

/** Part of a message in a request (OpenAI API reference, "Responses"). */
export type ResponseInputPart = { readonly prompt_cache_breakpoint?: CacheBreakpoint } & (
  | { readonly type: 'input_text'; readonly text: string }
  | {
      readonly type: 'input_image'
      /** URL, or `data:` URL. */
      readonly image_url: string
      readonly detail?: 'auto' | 'low' | 'high'
    }
  | {
      readonly type: 'input_file'
      readonly filename?: string
      /** File as a `data:` URL. */
      readonly file_data?: string
      readonly file_url?: string
      readonly file_id?: string
    }
)

/** Part of a message from the model. */
export type ResponseOutputPart =
  | { readonly type: 'output_text'; readonly text: string; readonly annotations?: readonly object[] }
  | { readonly type: 'refusal'; readonly refusal: string }

/** Item of an answer. Vendors may send other types; ignore unknown ones. */
export type ResponseOutputItem =
  | {
      readonly type: 'message'
      readonly id: string
      readonly role: 'assistant'
      readonly status: 'in_progress' | 'completed' | 'incomplete'
      readonly content: readonly ResponseOutputPart[]
    }
  | {
      readonly type: 'function_call'
      readonly id: string
      readonly call_id: string
      readonly name: string
      /** Arguments as JSON text. */
      readonly arguments: string
      /** Namespace in which the function was declared. */
      readonly namespace?: string
      readonly status?: 'in_progress' | 'completed' | 'incomplete'
    }
  | {
      readonly type: 'custom_tool_call'
      readonly id: string
      readonly call_id: string
      readonly name: string
      readonly input: string
    }
  | {
      readonly type: 'reasoning'
      readonly id: string
      readonly summary: readonly { readonly type: 'summary_text'; readonly text: string }[]
      /** Vendor's state. Send the item back unchanged. */
      readonly encrypted_content?: string | null
    }

/** Item in a request: a message, the output of a call, an item of an earlier answer, or a reference to one. */
export type ResponseInputItem =
  | {
      readonly type?: 'message'
      readonly role: 'user' | 'assistant' | 'system' | 'developer'
      readonly content: string | readonly (ResponseInputPart | ResponseOutputPart)[]
    }
  | {
      readonly type: 'function_call_output' | 'custom_tool_call_output'
      readonly call_id: string
      readonly output: string | readonly ResponseInputPart[]
    }
  | { readonly type: 'item_reference'; readonly id: string }
  | ResponseOutputItem

/** Tool; `parameters` is a JSON Schema. Vendors execute types other than these two themselves. */
export type ResponseTool =
  | {
      readonly type: 'function'
      readonly name: string
      readonly description?: string | null
      readonly parameters: { readonly [keyword: string]: unknown } | null
      readonly strict?: boolean | null
    }
  | { readonly type: 'custom'; readonly name: string; readonly description?: string; readonly format?: object }
  | { readonly type: HostedToolType; readonly [field: string]: unknown }

/** Tools that a vendor runs. */
export type HostedToolType = 'web_search' | 'file_search' | 'code_interpreter' | 'mcp'

/** Everything that the model reads, and that is counted (OpenAI API reference, "Get input token counts"). */
export interface ResponsePrompt {
  /** Input. A string is one user message. The list may be empty with `previous_response_id` or `conversation`. */
  readonly input: string | readonly ResponseInputItem[]
  /** System text of this request only: later turns do not inherit it. */
  readonly instructions?: string | null
  /** Id of the answer to continue. */
  readonly previous_response_id?: string | null
  /** Conversation that is read, and that the answer is added to. Cannot be combined with `previous_response_id`. */
  readonly conversation?: string | { readonly id: string } | null
  readonly tools?: readonly ResponseTool[]
  readonly tool_choice?:
    | 'auto'
    | 'none'
    | 'required'
    | { readonly type: 'function' | 'custom'; readonly name: string }
    | { readonly type: string; readonly [field: string]: unknown }
  readonly parallel_tool_calls?: boolean
  readonly text?: {
    readonly format?:
      | { readonly type: 'text' | 'json_object' }
      | {
          readonly type: 'json_schema'
          readonly name: string
          readonly schema: Readonly<Record<string, unknown>>
          readonly description?: string
          readonly strict?: boolean | null
        }
    readonly verbosity?: 'low' | 'medium' | 'high'
  }
  readonly reasoning?: {
    readonly effort?: ResponsesEffort | null
    /** Shows the reasoning as a summary, if set. */
    readonly summary?: 'auto' | 'concise' | 'detailed' | null
  }
  /** With `auto`, the vendor omits input that the model cannot read. With `disabled`, the default, overlong input is an error. */
  readonly truncation?: 'auto' | 'disabled' | null
}

/** A request for a response (OpenAI API reference, "Create a model response"). */
export interface ResponseRequest extends ResponsePrompt {
  /** Maximum number of generated tokens, reasoning included; at least 16. */
  readonly max_output_tokens?: number | null
  /** Sampling temperature, from 0 to 2. */
  readonly temperature?: number | null
  /** Nucleus sampling, from 0 to 1. */
  readonly top_p?: number | null
  readonly include?: readonly string[]
  /** Whether the answer can be continued by its id. Default true. */
  readonly store?: boolean | null
  /**
   * Whether the answer is generated after the call. `create` then returns its current state, and `retrieve` its later state, until
   * its status is neither `queued` nor `in_progress`. Default false.
   */
  readonly background?: boolean | null
  /** With `background`: address that gets a signed webhook at the end. An extension of this gateway. */
  readonly webhook_url?: string | null
  /** Up to 16 pairs. */
  readonly metadata?: Readonly<Record<string, string>> | null
  readonly service_tier?: string | null
  readonly user?: string
}

/** Tokens of a response. `input_tokens` includes those read from or written to the vendor's cache. */
export interface ResponseTokens {
  readonly input_tokens: number
  readonly input_tokens_details?: { readonly cached_tokens: number; readonly cache_write_tokens?: number }
  readonly output_tokens: number
  readonly output_tokens_details?: { readonly reasoning_tokens: number }
  readonly total_tokens: number
}

/** An answer (OpenAI API reference, "The response object"). */
export interface ResponseAnswer {
  readonly id: string
  readonly object: 'response'
  /** Creation time in Unix seconds. */
  readonly created_at: number
  readonly model: string
  /** Status. Only `completed` is a whole answer. */
  readonly status: 'queued' | 'in_progress' | 'completed' | 'incomplete' | 'failed' | 'cancelled'
  readonly background?: boolean | null
  readonly conversation?: { readonly id: string } | null
  /** Reason of a failure, or `null`. */
  readonly error: { readonly code: string; readonly message: string } | null
  /** Reason why the answer is incomplete, or `null`. */
  readonly incomplete_details: { readonly reason?: string } | null
  readonly output: readonly ResponseOutputItem[]
  readonly previous_response_id?: string | null
  readonly store?: boolean
  readonly metadata?: Readonly<Record<string, string>> | null
  readonly usage: ResponseTokens | null
}

/** Event about one item of a response. */
type ItemEvent<Type extends string, Members> = Members & {
  readonly type: `response.${Type}`
  readonly sequence_number: number
  readonly item_id: string
  readonly output_index: number
}

/** Event about one part of a message or of a reasoning summary. */
type PartEvent<Type extends string, Members> = ItemEvent<Type, Members & { readonly content_index: number }>
type SummaryEvent<Type extends string, Members> = ItemEvent<Type, Members & { readonly summary_index: number }>

/**
 * An event of a streamed response (OpenAI API reference, "Streaming events"). Vendors may send other types; ignore unknown
 * ones. Failures are thrown.
 */
export type ResponseEvent =
  | {
      readonly type: 'response.created' | 'response.in_progress' | 'response.completed' | 'response.incomplete'
      readonly sequence_number: number
      readonly response: ResponseAnswer
    }
  | {
      readonly type: 'response.output_item.added' | 'response.output_item.done'
      readonly sequence_number: number
      readonly output_index: number
      readonly item: ResponseOutputItem
    }
  | PartEvent<'content_part.added' | 'content_part.done', { readonly part: ResponseOutputPart }>
  | PartEvent<'output_text.delta' | 'refusal.delta', { readonly delta: string }>
  | PartEvent<'output_text.done', { readonly text: string }>
  | PartEvent<'refusal.done', { readonly refusal: string }>
  | ItemEvent<'function_call_arguments.delta' | 'custom_tool_call_input.delta', { readonly delta: string }>
  | ItemEvent<'function_call_arguments.done', { readonly arguments: string }>
  | ItemEvent<'custom_tool_call_input.done', { readonly input: string }>
  | SummaryEvent<'reasoning_summary_text.delta', { readonly delta: string }>
  | SummaryEvent<'reasoning_summary_text.done', { readonly text: string }>

/** Selects a page of items, by default 20 and at most 100. The cursor is the id of an item. */
export interface ResponseItemPage extends ListPage {
  /** Order. Default `desc`: newest first. */
  readonly order?: 'asc' | 'desc'
}

/** Page of items that a model read. */
export interface ResponseItemList extends ListOf<ResponseInputItem & { readonly id: string }> {}

/** Response, or its id. */
export type ResponseReference = ObjectReference
