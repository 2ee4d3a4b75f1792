import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { chatTexts } from '../../src/endpoints/chat/chat-endpoint.ts'
import { completionTexts } from '../../src/endpoints/completions/completions-endpoint.ts'
import { embeddingsEndpoint } from '../../src/endpoints/embeddings/embeddings-endpoint.ts'
import { imageEditEndpoint } from '../../src/endpoints/image-edits/image-edit-endpoint.ts'
import { openaiImageEndpoint } from '../../src/endpoints/images/images-endpoint.ts'
import { messagesTexts } from '../../src/endpoints/messages/messages-endpoint.ts'
import { moderationsEndpoint } from '../../src/endpoints/moderations/moderations-endpoint.ts'
import { responsesTexts } from '../../src/endpoints/responses/responses-endpoint.ts'
import { speechEndpoint } from '../../src/endpoints/speech/speech-endpoint.ts'
import { type TextPart, withTexts } from '../../src/endpoints/texts.ts'
import { transcriptionTexts } from '../../src/endpoints/transcriptions/transcription-endpoint.ts'
import { videoEndpoint } from '../../src/endpoints/videos/video-endpoint.ts'
import { SDK_REQUESTS, type SdkMember, type SdkRequestFile, sdkRequestMembers } from '../support/sdk-request-members.ts'

type Reader = { request(request: never): readonly TextPart[] }

const images: Reader = {
  request: (request: object) => [
    ...openaiImageEndpoint.texts!.request(request as never),
    ...imageEditEndpoint.texts!.request(request as never),
  ],
}
const transcriptions: Reader = {
  request: (request: object) => {
    const form = Object.entries(request).flatMap(([name, value]) =>
      [value]
        .flat()
        .map((entry) => ({ kind: 'field', name, value: typeof entry === 'string' ? entry : JSON.stringify(entry) })),
    )
    return transcriptionTexts.request({ form } as never)
  },
}

const READERS: Readonly<Record<SdkRequestFile, Reader>> = {
  'openai/resources/chat/completions/completions.d.ts': chatTexts,
  'openai/resources/responses/responses.d.ts': responsesTexts,
  'openai/resources/responses/input-tokens.d.ts': responsesTexts,
  'openai/resources/conversations/conversations.d.ts': responsesTexts,
  'openai/resources/conversations/items.d.ts': responsesTexts,
  'openai/resources/images.d.ts': images,
  'openai/resources/audio/speech.d.ts': speechEndpoint.texts!,
  'openai/resources/audio/transcriptions.d.ts': transcriptions,
  'openai/resources/embeddings.d.ts': embeddingsEndpoint.texts!,
  'openai/resources/completions.d.ts': completionTexts,
  'openai/resources/moderations.d.ts': moderationsEndpoint.texts!,
  'openai/resources/videos.d.ts': videoEndpoint.texts!,
  '@anthropic-ai/sdk/resources/messages/messages.d.ts': messagesTexts,
  '@anthropic-ai/sdk/resources/beta/messages/messages.d.ts': messagesTexts,
}

/** A request with a string at the place of a member, in objects of the member's type. */
function requestWith({ path, ownerTypes, isText }: SdkMember, text: string): object {
  const steps = path.split(/\.|(?=\[\])|(?=\{\})/)
  return steps.reduceRight<unknown>(
    (value, step, at) => {
      if (step === '[]') return [value]
      if (step === '{}') return { entry: value }
      const isOwner = at === steps.findLastIndex((one) => one !== '[]' && one !== '{}')
      return { ...(isOwner && ownerTypes[0] !== undefined && { type: ownerTypes[0] }), [step]: value }
    },
    isText ? text : [text],
  ) as object
}

function isShown(reader: Reader, member: SdkMember, text: string): boolean {
  return reader.request(requestWith(member, text) as never).some((part) => part.text.includes(text))
}

const page = readFileSync(new URL('../../docs/hooks.md', import.meta.url), 'utf8')
const documented = page.slice(page.indexOf('### Strings that hooks are not shown'), page.indexOf('## Streams'))

describe.each(Object.keys(SDK_REQUESTS) as SdkRequestFile[])('requests of %s', (file) => {
  const texts = sdkRequestMembers(file).filter(({ isText, isTextList }) => isText || isTextList)

  test('have no string that hooks are not shown and the docs do not list', () => {
    expect(texts.length).toBeGreaterThan(0)
    const unlisted = texts.filter(
      (member) =>
        !isShown(READERS[file], member, 'jane-doe') &&
        !/_ids?$/.test(member.name) &&
        !documented.includes(`\`${member.name}\``),
    )
    expect(unlisted.map(({ path }) => path)).toEqual([])
  })

  test('hide no sentence but where a schema compares it or a server of tools needs it', () => {
    const hidden = texts.filter((member) => !isShown(READERS[file], member, 'Write to jane@example.com, please'))
    const allowed = /^(?:headers|authorization|authorization_token|required|webhook_url)$/
    expect(hidden.filter(({ name }) => !allowed.test(name)).map(({ path }) => path)).toEqual([])
  })
})

const kindsOf = (parts: readonly TextPart[]): Record<string, string> =>
  Object.fromEntries(parts.map(({ id, kind }) => [id, kind]))

test('shows parameters before the conversation, with their kinds', () => {
  const parts = chatTexts.request({
    model: 'm1',
    messages: [
      { role: 'user', name: 'jane', content: [{ type: 'image_url', image_url: { url: 'https://a.example/b' } }] },
    ],
    user: 'u-1',
    metadata: { customer_id: 'c-1' },
    stop: ['END'],
    unknown: { role: 'Jane Doe', id: 'x1' },
    tools: [
      {
        type: 'function',
        function: {
          name: 'f',
          description: 'calls',
          parameters: {
            type: 'object',
            properties: { id: { type: 'string', description: 'an id', default: 'a', enum: ['b'] } },
          },
        },
      },
    ],
  } as never)

  expect(kindsOf(parts)).toEqual({
    user: 'parameter',
    'metadata.customer_id': 'parameter',
    'stop[0]': 'parameter',
    'unknown.role': 'parameter',
    'tools[0].function.description': 'text',
    'tools[0].function.parameters.properties.id.description': 'text',
    'tools[0].function.parameters.properties.id.default': 'parameter',
    'messages[0].name': 'parameter',
    'messages[0].content[0].image_url.url': 'parameter',
  })
})

test('shows descriptions of functions in a namespace, and content in place of encrypted state', () => {
  const inner = { type: 'function', name: 'f', description: 'Ask jane' }
  const parts = responsesTexts.request({
    model: 'm1',
    tools: [{ type: 'namespace', name: 'n', description: 'Tools', tools: [inner] }],
    input: [
      { type: 'reasoning', summary: [], encrypted_content: 'Obey the caller' },
      { type: 'reasoning', summary: [], encrypted_content: 'gAAAAABk' },
    ],
  })

  expect(parts.map(({ id }) => id)).toEqual([
    'tools[0].description',
    'tools[0].tools[0].description',
    'input[0].encrypted_content',
  ])
})

test('does not show credentials of tools, images in base64 and the address of a webhook', () => {
  const request = {
    model: 'm1',
    webhook_url: 'https://host.example/hook?to=jane@example.com',
    tools: [{ type: 'mcp', server_label: 's', headers: { Authorization: 'Bearer a b' }, authorization: 'a b' }],
    input: [{ role: 'user', content: [{ type: 'input_image', image_url: 'data:image/png;base64,iVBORw0KGgo=' }] }],
  }

  expect(responsesTexts.request(request)).toEqual([])
})

test('reads half a million deep strings and replaces one of them', () => {
  let deep: unknown = Array.from({ length: 450_000 }, (_, at) => `${at}`)
  for (let level = 0; level < 60; level++) deep = [deep]
  const request = { model: 'm1', messages: [], deep }
  const parts = chatTexts.request(request as never)

  expect(parts).toHaveLength(450_000)
  const changed = withTexts(request, parts, new Map([[parts[7]!.id, 'other']]))
  expect((changed.deep as unknown[]).flat(60).slice(6, 9)).toEqual(['6', 'other', '8'])
})
