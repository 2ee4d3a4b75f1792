import type { ChatTurn } from '../model/chat-turn.ts'
import type { AnswerContext } from '../sandbox-operation.ts'
import { signsThoughts } from './gemini-fields.ts'
import { thoughtSignature } from './thought-signature.ts'

type Json = Record<string, unknown>

/** What an answer is made from. */
export interface ContentParts {
  readonly model: string
  readonly turn: ChatTurn
  readonly context: AnswerContext
  /** `includeThoughts` of the request. */
  readonly showsThoughts: boolean
}

/** The whole answer. */
export function wholeContent(parts: ContentParts): Json {
  const { turn } = parts
  if (turn.ending === 'blocked') return blockedAnswer(parts)
  const thoughts = shownThoughts(parts).join('')
  const text = turn.words.join('')
  return answer(
    parts,
    [
      ...(thoughts === '' ? [] : [{ text: thoughts, thought: true }]),
      ...(text === '' ? [] : [{ text, ...textSignature(parts) }]),
      ...callParts(parts),
    ],
    finishReason(turn),
    usageOf(turn),
  )
}

/** The chunks of a streamed answer, each a whole response object; the last one has the finish reason. */
export function contentChunks(parts: ContentParts): Json[] {
  const { turn } = parts
  if (turn.ending === 'blocked') return [blockedAnswer(parts)]
  const soFar = { promptTokenCount: turn.usage.prompt, totalTokenCount: turn.usage.prompt }
  const pieces: Json[] = [
    ...shownThoughts(parts).map((text) => ({ text, thought: true })),
    ...turn.words.map((text) => ({ text })),
    ...callParts(parts),
  ]
  const last = answer(parts, [{ text: '', ...textSignature(parts) }], finishReason(turn), usageOf(turn))
  return [...pieces.map((piece) => answer(parts, [piece], undefined, soFar)), last]
}

/** A chunk that an endless stream repeats. */
export function fillerChunk(parts: ContentParts): Json {
  return answer(parts, [{ text: ' more' }], undefined, { promptTokenCount: parts.turn.usage.prompt })
}

function answer(parts: ContentParts, contentParts: readonly Json[], finish: string | undefined, usage: Json): Json {
  // An answer that says nothing has no parts at all.
  const content = contentParts.length === 0 ? { role: 'model' } : { parts: contentParts, role: 'model' }
  return {
    candidates: [{ content, ...(finish === undefined ? {} : { finishReason: finish }), index: 0 }],
    usageMetadata: parts.context.usage(usage),
    modelVersion: parts.model,
    responseId: parts.context.id,
  }
}

function blockedAnswer({ model, turn, context }: ContentParts): Json {
  return {
    promptFeedback: { blockReason: 'PROHIBITED_CONTENT' },
    usageMetadata: context.usage({ promptTokenCount: turn.usage.prompt, totalTokenCount: turn.usage.prompt }),
    modelVersion: model,
    responseId: context.id,
  }
}

function shownThoughts({ turn, showsThoughts }: ContentParts): readonly string[] {
  return showsThoughts ? turn.reasoning : []
}

function textSignature({ model, turn, context }: ContentParts): Json {
  const isSigned = signsThoughts(model) && turn.reasoning.length > 0 && turn.toolCalls.length === 0
  return isSigned ? { thoughtSignature: thoughtSignature(context.id) } : {}
}

/** Calls; only the first of parallel ones is signed, and older models give no ids. */
function callParts({ model, turn, context }: ContentParts): Json[] {
  const signs = signsThoughts(model)
  return turn.toolCalls.map((call, index) => ({
    functionCall: {
      ...(signs ? { id: `${context.id.slice(0, 8)}${index}` } : {}),
      name: call.name,
      args: call.arguments,
    },
    ...(signs && index === 0 ? { thoughtSignature: thoughtSignature(context.id) } : {}),
  }))
}

function finishReason(turn: ChatTurn): string {
  return turn.ending === 'length' ? 'MAX_TOKENS' : 'STOP'
}

/** The candidates' count excludes thoughts, the prompt's includes what was cached; counts of zero are left out. */
function usageOf({ usage }: ChatTurn): Json {
  const candidates = usage.completion - usage.reasoning
  return {
    promptTokenCount: usage.prompt,
    ...(candidates > 0 ? { candidatesTokenCount: candidates } : {}),
    totalTokenCount: usage.prompt + usage.completion,
    ...(usage.cached > 0 ? { cachedContentTokenCount: usage.cached } : {}),
    promptTokensDetails: [{ modality: 'TEXT', tokenCount: usage.prompt }],
    ...(usage.reasoning > 0 ? { thoughtsTokenCount: usage.reasoning } : {}),
  }
}
