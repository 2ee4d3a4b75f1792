import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createCatalog } from '../../src/catalog/catalog.ts'
import { BUILT_IN_MODELS } from '../../src/catalog/models/built-in-models.ts'
import { GatewayError } from '../../src/core/errors.ts'
import { parseCallerJson } from '../../src/core/json.ts'
import { chatEndpoint } from '../../src/endpoints/chat/chat-endpoint.ts'
import { completionsEndpoint } from '../../src/endpoints/completions/completions-endpoint.ts'
import { embeddingsEndpoint } from '../../src/endpoints/embeddings/embeddings-endpoint.ts'
import type { Endpoint } from '../../src/endpoints/endpoint.ts'
import { imageEditEndpoint } from '../../src/endpoints/image-edits/image-edit-endpoint.ts'
import {
  interactionImageEndpoint,
  multimodalImageEndpoint,
  openaiImageEndpoint,
} from '../../src/endpoints/images/images-endpoint.ts'
import { chatRequestFromMessages } from '../../src/endpoints/messages/chat-request-from-messages.ts'
import {
  countTokensEndpoint,
  MessagesConversation,
  messagesEndpoint,
} from '../../src/endpoints/messages/messages-endpoint.ts'
import type { MessagesRequest } from '../../src/endpoints/messages/messages-request.ts'
import { moderationsEndpoint } from '../../src/endpoints/moderations/moderations-endpoint.ts'
import { ENDPOINTS } from '../../src/endpoints/registry.ts'
import { rerankEndpoint, rerankV2Endpoint } from '../../src/endpoints/rerank/rerank-endpoint.ts'
import { chatRequestFromResponses } from '../../src/endpoints/responses/chat-request-from-responses.ts'
import {
  inputTokensEndpoint,
  ResponsesConversation,
  responsesEndpoint,
} from '../../src/endpoints/responses/responses-endpoint.ts'
import type { ResponsesRequest } from '../../src/endpoints/responses/responses-request.ts'
import { speechEndpoint, splitSpeechText } from '../../src/endpoints/speech/speech-endpoint.ts'
import { transcriptionEndpoint } from '../../src/endpoints/transcriptions/transcription-endpoint.ts'
import { withOwnObjects } from '../../src/endpoints/vendor-objects.ts'
import { videoEndpoint } from '../../src/endpoints/videos/video-endpoint.ts'
import { cohere } from '../../src/vendors/cohere/cohere.ts'
import { OPENAI_MODERATION_MODELS } from '../../src/vendors/openai/openai.ts'
import { oddBodies, rawJson } from './fuzz-bodies.ts'
import {
  chatBodies,
  completionBodies,
  countBodies,
  editBodies,
  embeddingBodies,
  generationBodies,
  inputTokenBodies,
  interactionBodies,
  messageBodies,
  moderationBodies,
  multimodalBodies,
  rerankBodies,
  responseBodies,
  speechBodies,
  videoBodies,
} from './fuzz-proper-bodies.ts'

/** A vendor that accepts images only as bytes. */
const BYTES_ONLY = { chat: { takesImageUrls: () => false } } as never

const catalog = createCatalog([
  // A row of a host, which chatBodies name.
  { id: 'chat-pro', kind: 'chat', vendor: 'openai', upstream: 'gpt-5.4-pro' },
  ...BUILT_IN_MODELS,
  ...OPENAI_MODERATION_MODELS,
  ...cohere({ apiKey: 'k' }).models,
])

const BODIES = process.env['DRILL'] === 'long' ? 10_000 : 500

/** A surrogate without its other half. */
const LONE_HALF = /\p{Surrogate}/u

/** Parses a body like the gateway and calls all functions of the endpoint. */
function ask(endpoint: Endpoint, body: Record<string, unknown>, textBytes: number) {
  const model = catalog.find(String(body['model']))
  if (model === undefined) throw new TypeError(`no such model: ${String(body['model'])}`)
  const request = endpoint.parse(parseCallerJson(Buffer.from(rawJson(body))), model)
  const usage = endpoint.estimate(request, textBytes, model)
  return {
    request,
    usage,
    fields: endpoint.priceFields?.(request, model),
    isStream: endpoint.isStream(request),
    textBytes: endpoint.textBytes?.(request) ?? 0,
    urls: endpoint.callerUrls?.(request) ?? [],
    type: endpoint.streamType?.(request),
    conversation: endpoint.continuation?.of(request),
  }
}

/** Returns the result of a function, or `undefined` for a rejection. Other errors are faults. */
function outcome<Answer>(run: () => Answer): Answer | undefined {
  try {
    return run()
  } catch (error) {
    if (!GatewayError.isInstance(error) || error.status < 400 || error.status >= 500) throw error
    return undefined
  }
}

const FUZZED: readonly (readonly [string, Endpoint, readonly Record<string, unknown>[]])[] = [
  ['chat', chatEndpoint as Endpoint, chatBodies],
  ['embeddings', embeddingsEndpoint as Endpoint, embeddingBodies],
  ['rerank of version 2', rerankV2Endpoint as Endpoint, rerankBodies],
  ['multimodal images', multimodalImageEndpoint as Endpoint, multimodalBodies],
  ['interactions', interactionImageEndpoint as Endpoint, interactionBodies],
  ['generations', openaiImageEndpoint as Endpoint, generationBodies],
  ['image edits', imageEditEndpoint as Endpoint, editBodies],
  ['messages', messagesEndpoint as Endpoint, messageBodies],
  ['count_tokens', countTokensEndpoint as Endpoint, countBodies],
  ['responses', responsesEndpoint as Endpoint, responseBodies],
  ['input_tokens', inputTokensEndpoint as Endpoint, inputTokenBodies],
  ['rerank', rerankEndpoint as Endpoint, rerankBodies],
  ['speech', speechEndpoint as Endpoint, speechBodies],
  ['moderations', moderationsEndpoint as Endpoint, moderationBodies],
  ['completions', completionsEndpoint as Endpoint, completionBodies],
  ['videos', videoEndpoint as Endpoint, videoBodies],
]

/** Takes forms only; `test/gateway/input/fuzz-forms.test.ts` changes these. */
const FORMS_ONLY = transcriptionEndpoint as Endpoint

test('every endpoint and every shape is below', () => {
  const all = ENDPOINTS.flatMap(({ shapes, ...endpoint }) => (shapes ? [...shapes.values()] : [endpoint]))
  const missing = all.filter(
    ({ parse }) => parse !== FORMS_ONLY.parse && !FUZZED.some(([, fuzzed]) => fuzzed.parse === parse),
  )

  expect(missing.map(({ path }) => path)).toEqual([])
})

describe.each(FUZZED)('%s', (_name, endpoint, bodies) => {
  test('the bodies that are changed below are proper ones', () => {
    for (const body of bodies) expect(ask(endpoint, body, 1).request).toBeDefined()
  })

  test('an odd body is answered for, or refused with a 4xx, and leaves no trace', () => {
    fc.assert(
      fc.property(oddBodies(bodies), (body) => {
        const asked = outcome(() => ask(endpoint, body, 100))
        for (const amount of Object.values(asked?.usage ?? {})) {
          expect(Number.isSafeInteger(amount) && amount >= 0).toBe(true)
        }
        for (const text of Object.values(asked?.fields ?? {})) expect(typeof text).toBe('string')
        expect(Object.getOwnPropertyNames(Object.prototype)).toHaveLength(12)
      }),
      { numRuns: BODIES },
    )
  })
})

test('an odd Messages request is translated for other vendors, or refused with a 4xx', () => {
  fc.assert(
    fc.property(oddBodies(messageBodies), (body) => {
      const asked = outcome(() => ask(messagesEndpoint as Endpoint, body, 100))
      if (asked === undefined) return
      const request = asked.request as MessagesRequest
      const translated = outcome(() => chatRequestFromMessages(request, 4_096))
      expect(new MessagesConversation(request).messages).toBeInstanceOf(Array)
      const media = messagesEndpoint.remoteMedia?.(request, BYTES_ONLY, {} as never)
      expect(media?.inline(media.urls.map(() => 'data:image/png;base64,aGk=')).messages.length ?? 1).toBeGreaterThan(0)
      if (translated === undefined) return
      expect(() => JSON.stringify(translated.request)).not.toThrow()
      for (const name of translated.dropped) expect(name).toMatch(/^[\x20-\x7e]+$/)
    }),
    { numRuns: BODIES },
  )
})

test('an odd request for a response is translated for other vendors, or refused with a 4xx', () => {
  fc.assert(
    fc.property(oddBodies(responseBodies), (body) => {
      const asked = outcome(() => ask(responsesEndpoint as Endpoint, body, 100))
      if (asked === undefined) return
      const request = asked.request as ResponsesRequest
      const translated = outcome(() => chatRequestFromResponses(request, { vendor: 'any' }))
      expect(new ResponsesConversation(request).messages).toBeInstanceOf(Array)
      // Odd members can name a conversation or an answer, which is rejected.
      expect([request, undefined]).toContain(outcome(() => withOwnObjects(request, new Set())))
      const media = responsesEndpoint.remoteMedia?.(request, BYTES_ONLY, {} as never)
      expect(media?.inline(media.urls.map(() => 'data:image/png;base64,aGk=')).input?.length ?? 1).toBeGreaterThan(0)
      if (translated === undefined) return
      expect(() => JSON.stringify(translated.request)).not.toThrow()
      expect(translated.paths).toHaveLength(translated.request.messages.length)
      for (const name of translated.dropped) expect(name).toMatch(/^[\x20-\x7e]+$/)
    }),
    { numRuns: BODIES },
  )
})

test('the parts of an odd text are whole characters, fit the model, and lose nothing but white space', () => {
  const piece = fc.constantFrom(
    'a',
    ' ',
    '\n',
    '. ',
    '。',
    '\ud83d\ude00',
    '\ud800',
    '\u{1F469}\u200D\u{1F469}',
    '字',
    '"”',
    '...',
  )
  const texts = fc.oneof(
    fc.array(piece, { maxLength: 400 }).map((pieces) => pieces.join('')),
    fc.string({ unit: 'binary', maxLength: 300 }),
  )
  fc.assert(
    fc.property(texts, fc.integer({ min: 1, max: 60 }), (text, most) => {
      const parts = splitSpeechText(text, most)
      expect(parts.join('').replace(/\s/g, '')).toBe(text.replace(/\s/g, ''))
      const isWhole = !LONE_HALF.test(text)
      for (const part of parts) expect(LONE_HALF.test(part) && isWhole).toBe(false)
    }),
  )
})
