import { type CallerUrl, defineEndpoint } from '../endpoint.ts'
import { openaiErrors } from '../error-dialect.ts'
import { jsonSchemaOf } from '../json-schema.ts'
import { isInline, type MediaInput } from '../media-input.ts'
import { checkRequest } from '../request-field.ts'
import { requestTexts } from '../request-texts.ts'
import { addWebUrls } from '../web-urls.ts'
import { createModerationsOperation, type ModerationsOffer } from './moderation-operation.ts'
import { type ModerationRequest, moderationSchema, partsOf } from './moderation-request.ts'

/** `POST /v1/moderations` (OpenAI API, "Create moderation"). */
export const moderationsEndpoint = defineEndpoint<ModerationRequest, ModerationsOffer>({
  id: 'moderations',
  path: '/v1/moderations',
  kind: 'moderation',
  servesUnlisted: ({ moderations }) => moderations !== undefined,
  errors: openaiErrors,
  isFree: 'unless-priced',
  canHedge: true,
  defaultModel: 'omni-moderation-latest',
  parse: (body) => checkRequest<ModerationRequest>(moderationSchema(), body),
  requestSchema: () => jsonSchemaOf(moderationSchema(), 'input'),
  isStream: () => false,
  callerUrls: (request) => {
    const urls: CallerUrl[] = []
    for (const [index, part] of (partsOf(request) ?? []).entries()) addWebUrls(part, `input[${index}]`, urls)
    return urls.length === 0 ? undefined : urls
  },
  media: picturesOf,
  estimate: (_request, inputTokens) => ({ inputTokens, outputTokens: 0 }),
  texts: {
    request: (request) =>
      requestTexts(request, {
        kinds: { input: 'text' },
        kindOf: (name) => (name === 'text' ? 'text' : undefined),
        last: ['input'],
        roleOf: () => 'user',
      }),
  },
  createOperation: createModerationsOperation,
  cached: {
    leftOut: new Set(),
    isDeterministic: () => true,
    isExcluded: () => false,
    refusals: [],
    idPaths: [['id']],
  },
})

function picturesOf(request: ModerationRequest): readonly MediaInput[] {
  return (partsOf(request) ?? []).flatMap((part): MediaInput[] => {
    if (part.type !== 'image_url') return []
    const { url } = part.image_url
    return [{ kind: 'image', ...(isInline(url) ? { data: url } : {}) }]
  })
}
