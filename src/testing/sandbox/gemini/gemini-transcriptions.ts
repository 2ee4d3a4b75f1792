import { Buffer } from 'node:buffer'
import { heardRecording } from '../model/transcript.ts'
import { asList, asObject, asText } from '../request-fields.ts'
import { jsonReply, type SandboxOperation } from '../sandbox-operation.ts'
import { checkGeminiConfig } from './gemini-config-checks.ts'
import { checkGeminiContents, partsOf } from './gemini-contents.ts'
import { checkGeminiKey, field, GEMINI_ERRORS, GEMINI_HEADERS, modelMethod, refuseGemini } from './gemini-errors.ts'

const TOKENS_PER_SECOND = 32

/** Gemini: `generateContent` with a recording and the instruction to transcribe it; 32 tokens per second. */
export const GEMINI_TRANSCRIPTIONS: SandboxOperation = {
  vendor: 'gemini',
  operation: 'transcriptions',
  errors: GEMINI_ERRORS,
  matches: ({ method, path, body }) =>
    method === 'POST' && modelMethod(path)?.method === 'generateContent' && asksForTranscript(body),
  promptText: instructionOf,
  answer(call, context) {
    checkGeminiKey(call)
    const { model = '' } = modelMethod(call.path) ?? {}
    const request = asObject(call.body)
    checkGeminiConfig(request, model)
    checkGeminiContents(request, model)
    const heard = heardRecording(Buffer.from(soundOf(call.body) ?? '', 'base64'), context.script)
    if (heard === undefined) return refuseGemini('Request contains an invalid argument.')
    const audio = Math.ceil(heard.seconds * TOKENS_PER_SECOND)
    const text = Math.ceil(instructionOf(call.body).length / 4)
    const usage = {
      promptTokenCount: audio + text,
      candidatesTokenCount: heard.tokens,
      totalTokenCount: audio + text + heard.tokens,
      promptTokensDetails: [
        { modality: 'TEXT', tokenCount: text },
        { modality: 'AUDIO', tokenCount: audio },
      ],
    }
    const answer = {
      candidates: [{ content: { parts: [{ text: heard.text }], role: 'model' }, finishReason: 'STOP', index: 0 }],
      usageMetadata: context.usage(usage),
      modelVersion: model,
      responseId: context.id,
    }
    return jsonReply(200, GEMINI_HEADERS, answer, 2)
  },
}

/** Whether a request is a chat about a recording to transcribe. */
export function asksForTranscript(body: unknown): boolean {
  return soundOf(body) !== undefined && instructionOf(body).startsWith('Transcribe')
}

function lastParts(body: unknown): readonly unknown[] {
  return partsOf(asList(asObject(body)['contents']).at(-1))
}

/** Returns the recording as base64. */
function soundOf(body: unknown): string | undefined {
  const data = lastParts(body)
    .map((part) => field(part, 'inlineData'))
    .find((inline) => asText(field(inline, 'mimeType')).startsWith('audio/'))
  return data === undefined ? undefined : asText(asObject(data)['data'])
}

function instructionOf(body: unknown): string {
  return lastParts(body)
    .map((part) => asText(asObject(part)['text']))
    .join('')
}
