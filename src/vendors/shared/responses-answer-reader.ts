import { isJsonObject } from '../../core/json.ts'
import type { Usage } from '../../core/usage.ts'
import type { ChatAnnotation, FinishReason } from '../../endpoints/chat/chat-completion.ts'
import type { EncryptedReasoning } from '../../endpoints/chat/chat-request.ts'
import type { ChatStreamWriter } from '../../endpoints/chat/chat-stream-writer.ts'
import type { VendorCall } from '../vendor.ts'
import { carriedReasoning } from './encrypted-reasoning.ts'
import { responsesUsage } from './openai-responses-usage.ts'

type Json = Readonly<Record<string, unknown>>

/** Separator between two parts of a reasoning summary. */
const PARAGRAPH = '\n\n'

/** Types of items that are calls of the caller's tools. */
const CALLS: ReadonlySet<unknown> = new Set(['function_call', 'custom_tool_call'])

/** Call whose answer is read. */
interface AnswerCall extends Pick<VendorCall<object>, 'apiKey' | 'model'> {
  readonly request: object
}

/**
 * Reads a response as the answer to a chat and passes its content to a writer: from the events of a stream, or item by item. Data
 * missing in an event is taken from a later one with the whole item. Items that chat does not support are skipped.
 */
export class ResponsesAnswerReader {
  isComplete = false
  usage: Usage | undefined
  readonly #writer: ChatStreamWriter
  readonly #call: AnswerCall
  /** Index of each call among the calls, by its index in the output. */
  readonly #calls = new Map<unknown, { readonly index: number; hasArguments: boolean }>()
  readonly #doneItems = new Set<unknown>()
  /** Reasoning that waits for the item after it. */
  #reasoning: EncryptedReasoning[] = []
  #hasStarted = false
  #hasReasoning = false
  #needsParagraph = false
  /** Characters of text so far, and before the open item. */
  #textLength = 0
  #textBefore = 0
  #hasItemContent = false
  #hasPartContent = false
  #hasItemReasoning = false

  constructor(writer: ChatStreamWriter, call: AnswerCall) {
    this.#writer = writer
    this.#call = call
  }

  /** Reads one event. Unknown ones are skipped. */
  read(event: Json): void {
    const { type, output_index: place, item, delta, response } = event
    switch (type) {
      case 'response.created':
      case 'response.in_progress':
        this.#start(response)
        break
      case 'response.output_item.added':
        this.#beginItem()
        // A call that is already complete is read when it is done: Perplexity sends its own searches as calls.
        if (isJsonObject(item) && CALLS.has(item['type']) && item['status'] !== 'completed') this.#openCall(place, item)
        break
      case 'response.content_part.added':
        this.#hasPartContent = false
        break
      case 'response.output_text.delta':
        this.text(asText(delta), logprobsIn(event))
        break
      case 'response.output_text.done':
        if (!this.#hasPartContent) this.text(asText(event['text']), logprobsIn(event))
        break
      case 'response.refusal.delta':
        this.#refusal(asText(delta))
        break
      case 'response.refusal.done':
        if (!this.#hasPartContent) this.#refusal(asText(event['refusal']))
        break
      case 'response.reasoning_summary_part.added':
        this.#needsParagraph = true
        break
      case 'response.reasoning_summary_text.delta':
      case 'response.reasoning_text.delta':
        this.reasoning(asText(delta))
        break
      case 'response.function_call_arguments.delta':
      case 'response.custom_tool_call_input.delta':
        this.#arguments(place, asText(delta))
        break
      case 'response.output_item.done':
        if (isJsonObject(item)) this.readItem(place, item)
        break
      case 'response.completed':
      case 'response.incomplete':
        this.#end(isJsonObject(response) ? response : {})
    }
  }

  /** Writes a chunk of text. */
  text(text: string, logprobs?: readonly unknown[]): void {
    if (text === '') return
    this.#start(undefined)
    this.#textLength += text.length
    this.#hasItemContent = true
    this.#hasPartContent = true
    this.#writer.text(text, 0, logprobs)
  }

  /** Writes a chunk of reasoning. */
  reasoning(text: string): void {
    if (text === '') return
    this.#start(undefined)
    this.#hasItemReasoning = true
    this.#writer.reasoning(this.#needsParagraph && this.#hasReasoning ? PARAGRAPH + text : text)
    this.#needsParagraph = false
    this.#hasReasoning = true
  }

  /** Reads a whole item without repeating what earlier events contained. */
  readItem(place: unknown, item: Json): void {
    if (this.#doneItems.has(place)) return
    this.#doneItems.add(place)
    if (item['type'] === 'message') this.#message(item)
    else if (CALLS.has(item['type'])) this.#functionCall(place, item)
    else if (item['type'] === 'reasoning') this.#reasoningItem(item)
    this.#beginItem()
  }

  #start(response: unknown): void {
    if (this.#hasStarted) return
    this.#hasStarted = true
    this.#writer.start(isJsonObject(response) ? asText(response['id']) : '')
  }

  #beginItem(): void {
    this.#textBefore = this.#textLength
    this.#hasItemContent = false
    this.#hasPartContent = false
    this.#hasItemReasoning = false
    this.#needsParagraph = true
  }

  #refusal(text: string): void {
    if (text === '') return
    this.#start(undefined)
    this.#hasItemContent = true
    this.#hasPartContent = true
    this.#writer.refusal(text)
  }

  #message(item: Json): void {
    const parts = listOf(item['content'])
    if (!this.#hasItemContent) {
      for (const part of parts) {
        if (part['type'] === 'refusal') this.#refusal(asText(part['refusal']))
        else this.text(asText(part['text']), logprobsIn(part))
      }
    }
    const annotations: ChatAnnotation[] = []
    let offset = this.#textBefore
    for (const part of parts) {
      for (const one of listOf(part['annotations'])) {
        const citation = citationOf(one, offset)
        if (citation !== undefined) annotations.push(citation)
      }
      offset += asText(part['text']).length
    }
    if (annotations.length > 0) this.#writer.annotations?.(annotations)
  }

  #openCall(place: unknown, { type, call_id: id, name }: Json): void {
    if (this.#calls.has(place)) return
    this.#start(undefined)
    const index = this.#calls.size
    this.#calls.set(place, { index, hasArguments: false })
    const extra = this.#reasoning.length === 0 ? {} : { extra: carriedReasoning(this.#reasoning, this.#call) }
    this.#reasoning = []
    const custom = type === 'custom_tool_call' ? { isCustom: true } : {}
    this.#writer.toolCall({ index, id: asText(id), name: asText(name), ...extra, ...custom })
  }

  #arguments(place: unknown, json: string): void {
    const call = this.#calls.get(place)
    if (call === undefined || json === '') return
    call.hasArguments = true
    this.#writer.toolCallArguments(call.index, json)
  }

  #functionCall(place: unknown, item: Json): void {
    this.#openCall(place, item)
    if (this.#calls.get(place)?.hasArguments !== false) return
    const { type, input, arguments: json } = item
    this.#arguments(place, type === 'custom_tool_call' ? asText(input) : asText(json) || '{}')
  }

  #reasoningItem({ id, encrypted_content: content, summary, content: texts }: Json): void {
    if (!this.#hasItemReasoning) {
      for (const part of [...listOf(summary), ...listOf(texts)]) {
        this.#needsParagraph = true
        this.reasoning(asText(part['text']))
      }
    }
    if (typeof id === 'string' && typeof content === 'string' && content !== '')
      this.#reasoning.push({ id, encrypted_content: content })
  }

  #end(response: Json): void {
    this.#start(response)
    for (const [place, item] of listOf(response['output']).entries()) this.readItem(place, item)
    this.usage = responsesUsage(response, (this.#call.request as { readonly service_tier?: unknown }).service_tier)
    if (this.#reasoning.length > 0 && this.#textLength > 0)
      this.#writer.extraContent(carriedReasoning(this.#reasoning, this.#call))
    this.#writer.finish(finishReason(response, this.#calls.size > 0))
    this.isComplete = true
  }
}

/** If an answer is incomplete, the token limit is the reason unless another is given. */
function finishReason({ status, incomplete_details: details }: Json, hasCalls: boolean): FinishReason {
  if (status !== 'incomplete') return hasCalls ? 'tool_calls' : 'stop'
  return isJsonObject(details) && details['reason'] === 'content_filter' ? 'content_filter' : 'length'
}

/** Returns a web source with its position in the whole text, or `undefined` for other annotations. */
function citationOf(annotation: Json, offset: number): ChatAnnotation | undefined {
  const { type, start_index: start, end_index: end, url, title } = annotation
  if (type !== 'url_citation' || typeof url !== 'string') return undefined
  return {
    type,
    url_citation: {
      start_index: offset + (typeof start === 'number' ? start : 0),
      end_index: offset + (typeof end === 'number' ? end : 0),
      url,
      title: asText(title),
    },
  }
}

function logprobsIn({ logprobs }: Json): readonly unknown[] | undefined {
  return Array.isArray(logprobs) && logprobs.length > 0 ? logprobs : undefined
}

function listOf(value: unknown): Json[] {
  return Array.isArray(value) ? value.filter(isJsonObject) : []
}

function asText(value: unknown): string {
  return typeof value === 'string' ? value : ''
}
