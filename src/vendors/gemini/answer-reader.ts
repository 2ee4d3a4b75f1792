import { isJsonObject } from '../../core/json.ts'
import type { Usage } from '../../core/usage.ts'
import type { ChatRequest } from '../../endpoints/chat/chat-request.ts'
import type { ChatStreamWriter } from '../../endpoints/chat/chat-stream-writer.ts'
import { invalidResponse } from '../shared/invalid-response.ts'
import type { VendorCall, VendorFailure } from '../vendor.ts'
import { brokenCandidate, failureOf } from './error-from.ts'
import { blocksPrompt, finishReason } from './finish-reason.ts'
import { googleErrorFrom } from './google-error.ts'
import { signatureExtra } from './thought-signature.ts'
import { usageFrom } from './usage-from.ts'

/** What one candidate has given so far. */
interface CandidateState {
  toolCallCount: number
  /** A signature that came on reasoning or on an empty text; it belongs to the call beside it, else to the message. */
  looseSignature: string | undefined
  messageSignature: string | undefined
  isFinished: boolean
}

/**
 * Reads response objects of `generateContent`, one for a whole answer and many for a stream, and tells a writer what they
 * hold. Both ways go through here, so that the same answer means the same text, calls and usage.
 */
export class AnswerReader {
  failure: VendorFailure | undefined
  usage: Usage | undefined
  readonly #writer: ChatStreamWriter
  readonly #fallbackId: string
  readonly #apiKey: string
  readonly #candidates = new Map<number, CandidateState>()
  #id: string | undefined
  #isBlocked = false

  constructor(writer: ChatStreamWriter, call: Pick<VendorCall<ChatRequest>, 'apiKey' | 'nowMs'>) {
    this.#writer = writer
    this.#fallbackId = `gemini-${call.nowMs.toString(36)}`
    this.#apiKey = call.apiKey
  }

  /** True once every candidate has said why it stopped, or the prompt was blocked. */
  get isComplete(): boolean {
    if (this.#candidates.size === 0) return this.#isBlocked
    return [...this.#candidates.values()].every((candidate) => candidate.isFinished)
  }

  /** Takes one response object; nothing more is read after a failure. */
  read(response: unknown): void {
    if (this.failure !== undefined) return
    const error = googleErrorFrom(response)
    if (error !== undefined) {
      this.failure = failureOf(error, 0, [this.#apiKey])
      return
    }
    if (!isJsonObject(response)) {
      this.failure = invalidResponse('the vendor sent something that is no response object')
      return
    }
    this.#open(response['responseId'])
    this.usage = usageFrom(response['usageMetadata']) ?? this.usage
    const candidates = Array.isArray(response['candidates']) ? response['candidates'] : []
    for (const candidate of candidates) if (isJsonObject(candidate)) this.#readCandidate(candidate)
    const feedback = response['promptFeedback']
    if (this.#candidates.size === 0 && isJsonObject(feedback) && blocksPrompt(feedback['blockReason'])) this.#block()
  }

  #open(responseId: unknown): void {
    if (this.#id !== undefined) return
    this.#id = typeof responseId === 'string' && responseId !== '' ? responseId : this.#fallbackId
    this.#writer.start(this.#id)
  }

  #block(): void {
    if (this.#isBlocked) return
    this.#isBlocked = true
    this.#writer.finish('content_filter', 0)
  }

  #readCandidate(candidate: Record<string, unknown>): void {
    const broken = brokenCandidate(candidate)
    if (broken !== undefined) {
      this.failure = broken
      return
    }
    const choice = typeof candidate['index'] === 'number' ? candidate['index'] : 0
    const state = this.#stateOf(choice)
    // A candidate may come with `content: {}`, without parts, or without content.
    const content = candidate['content']
    const parts = isJsonObject(content) && Array.isArray(content['parts']) ? content['parts'] : []
    for (const part of parts) if (isJsonObject(part)) this.#readPart(part, choice, state)
    const reason = candidate['finishReason']
    if (typeof reason === 'string' && !state.isFinished) this.#finish(reason, choice, state)
  }

  #stateOf(choice: number): CandidateState {
    const known = this.#candidates.get(choice)
    if (known !== undefined) return known
    const state = { toolCallCount: 0, looseSignature: undefined, messageSignature: undefined, isFinished: false }
    this.#candidates.set(choice, state)
    return state
  }

  #readPart(part: Record<string, unknown>, choice: number, state: CandidateState): void {
    const { text, thought, functionCall, thoughtSignature } = part
    const signature = typeof thoughtSignature === 'string' && thoughtSignature !== '' ? thoughtSignature : undefined
    if (isJsonObject(functionCall)) {
      this.#readCall(functionCall, signature, choice, state)
      return
    }
    if (typeof text === 'string' && text !== '') {
      if (thought === true) this.#writer.reasoning(text, choice)
      else this.#writer.text(text, choice)
    }
    if (signature === undefined) return
    if (thought === true || text === undefined || text === '') state.looseSignature = signature
    else state.messageSignature = signature
  }

  #readCall(
    call: Record<string, unknown>,
    ownSignature: string | undefined,
    choice: number,
    state: CandidateState,
  ): void {
    const index = state.toolCallCount
    state.toolCallCount += 1
    const signature = ownSignature ?? (index === 0 ? state.looseSignature : undefined)
    if (signature !== undefined) state.looseSignature = undefined
    const { id, name, args } = call
    this.#writer.toolCall(
      {
        index,
        id: typeof id === 'string' && id !== '' ? id : this.#madeCallId(choice, index),
        name: typeof name === 'string' ? name : '',
        ...(signature === undefined ? {} : { extra: signatureExtra(signature) }),
      },
      choice,
    )
    this.#writer.toolCallArguments(index, JSON.stringify(isJsonObject(args) ? args : {}), choice)
  }

  /** Older models give calls no id. Other vendors, which may read the history later, allow 40 word characters. */
  #madeCallId(choice: number, index: number): string {
    const answer = (this.#id ?? this.#fallbackId).replace(/[^\w-]/g, '').slice(0, 24)
    return `call_${answer}_${choice}_${index}`
  }

  #finish(reason: string, choice: number, state: CandidateState): void {
    state.isFinished = true
    const signature = state.messageSignature ?? state.looseSignature
    if (signature !== undefined) this.#writer.extraContent(signatureExtra(signature), choice)
    this.#writer.finish(finishReason(reason, state.toolCallCount > 0), choice)
  }
}
