import type { ModelDefinition } from '../../catalog/model.ts'
import { memberNames } from '../../core/known-members.ts'
import type { ChatRequest } from '../../endpoints/chat/chat-request.ts'
import { chatByResponses } from '../shared/chat-by-responses.ts'
import { unsupportedParameter } from '../shared/invalid-response.ts'
import {
  OPENAI_PRICE_MEMBERS,
  openaiAbilities,
  openaiMedia,
  takesToolsByResponses,
} from '../shared/openai-abilities.ts'
import { openaiChat } from '../shared/openai-chat.ts'
import {
  DEFAULT_TOKEN_LIMIT_FIELD,
  type FieldMapping,
  OPENAI_RULES,
  type OperationPath,
  ROUTING_RULES,
  type TokenLimitField,
  tokenLimitField,
} from '../shared/openai-chat-dialect.ts'
import { openaiEmbeddings } from '../shared/openai-embeddings.ts'
import { type ErrorWords, errorReader } from '../shared/openai-error.ts'
import { openaiImageEdits, openaiImages } from '../shared/openai-images.ts'
import { type OpenAIResponsesDialect, openaiResponses } from '../shared/openai-responses.ts'
import { openaiTranscriptions, transcriptionAbilities } from '../shared/openai-transcriptions.ts'
import { effortUnseen, hasHiddenReasoning, ownsEncryptedReasoning } from '../shared/reasoning.ts'
import {
  commonParts,
  keyHeaders,
  type ResourceAddress,
  resourceAddress,
  type SafetyIdentifierOptions,
  type VendorObjectOptions,
  vendorAddress,
} from '../shared/vendor-options.ts'
import type { NamedVendorOptions, Vendor, VendorOptions } from '../vendor.ts'

/** Options of {@link azureOpenai}. */
export interface AzureOpenAIOptions
  extends ResourceAddress,
    NamedVendorOptions,
    VendorObjectOptions,
    SafetyIdentifierOptions {
  /** Name of the resource: `my-resource` of `https://my-resource.openai.azure.com`. */
  readonly resource?: string | undefined
  /** Any address of the resource, in place of `resource`, as shown by the portal or an SDK. */
  readonly endpoint?: string | undefined
  /**
   * A dated version, such as `2024-10-21`, whose paths name the deployment; `preview` for the previews of v1; or `v1` (default) for
   * the paths of v1, which need no version.
   */
  readonly apiVersion?: string | undefined
  /** OpenAI's id of the model of a deployment, if the deployment has another name. */
  readonly deployments?: Readonly<Record<string, string>> | undefined
  /** Field for the token limit of a model, by OpenAI's id. Takes precedence over the built-in table. */
  readonly tokenLimitFields?: Readonly<Record<string, TokenLimitField>> | undefined
  /**
   * Whether the resource supports Responses. By default, versions that have it do: `v1`, `preview`, and dated ones from
   * `2025-03-01-preview` on. If false, such requests are translated into chat completions.
   */
  readonly responses?: boolean | undefined
  /** Models that the vendor serves. `upstream` is the name of the deployment. */
  readonly models?: readonly Omit<ModelDefinition, 'vendor'>[] | undefined
}

const AZURE_OPENAI_OPTIONS = memberNames<Omit<AzureOpenAIOptions, keyof VendorOptions>>()(
  'id displayName resource endpoint apiVersion deployments tokenLimitFields responses allowVendorObjects',
  'safetyIdentifierKey models',
)

const apiKeyHeaders = keyHeaders('api-key')

/** Codes of the resource and its deployments concern the operator (Azure OpenAI, "Troubleshoot errors"). */
const ERROR_WORDS: ErrorWords = {
  codes: {
    content_filter: 'caller',
    404: 'operator',
    DeploymentNotFound: 'operator',
    ResourceNotFound: 'operator',
    OperationNotSupported: 'operator',
    PermissionDenied: 'operator',
  },
  // A rejected prompt is charged, because the service has read it (Azure OpenAI, "Content filtering").
  billed: ['content_filter'],
  concerns: {
    404: 'model',
    DeploymentNotFound: 'model',
    OperationNotSupported: 'model',
    PermissionDenied: 'key',
  },
}

/** The service reads them with the rights of the operator's resource (Azure OpenAI, "On Your Data"). */
const sourcesRefused: FieldMapping<ChatRequest> = {
  needed: (value) => Array.isArray(value) && value.length > 0,
  apply: () => {
    throw unsupportedParameter('data_sources', 'data_sources: sources of the operator cannot be named here.')
  },
}

const RULES_WITHOUT_SOURCES = {
  max_tokens: { ...OPENAI_RULES.max_tokens, data_sources: sourcesRefused },
  max_completion_tokens: { ...OPENAI_RULES.max_completion_tokens, data_sources: sourcesRefused },
} as const

/**
 * Creates the vendor Azure OpenAI: responses, chat completions, embeddings, images, image edits and transcription at your own
 * resource. `upstream` of a model is the name of its deployment.
 * @throws TypeError for an unknown option, an invalid version, and unless exactly one of `resource` and `endpoint` is given.
 */
export function azureOpenai(options: AzureOpenAIOptions): Vendor {
  const usual = { id: 'azure-openai', displayName: 'Azure OpenAI' }
  const parts = commonParts('azureOpenai', options, AZURE_OPENAI_OPTIONS, usual)
  const { origin, prefix, apiVersion } = addressOf(options)
  const errors = errorReader(ERROR_WORDS, parts.apiKeys)
  const deployments = new Map(Object.entries(options.deployments ?? {}))
  const modelOf = (deployment: string): string => deployments.get(deployment) ?? deployment
  const path = (operation: string): OperationPath => operationPath(`${prefix}/openai`, operation, apiVersion)
  const common = { headers: apiKeyHeaders, streamFailure: errors.fromStream }
  const rules = options.allowVendorObjects === true ? OPENAI_RULES : RULES_WITHOUT_SOURCES
  const chat = openaiChat({
    ...common,
    path: path('chat/completions'),
    rulesFor: (deployment) =>
      rules[tokenLimitField(modelOf(deployment), options.tokenLimitFields, DEFAULT_TOKEN_LIMIT_FIELD)],
    hasHiddenReasoning: (deployment, request) => hasHiddenReasoning(modelOf(deployment), request),
    abilities: ({ upstream, efforts }) => openaiAbilities(modelOf(upstream), efforts),
  })
  const responses: OpenAIResponsesDialect = {
    ...common,
    ...responsesAddress(`${prefix}/openai`, apiVersion),
    rules: ROUTING_RULES,
    // No page of Azure's lists the count.
    countsTokens: false,
    hasHiddenReasoning: (deployment, effort) => effortUnseen(modelOf(deployment), effort),
  }
  return {
    ...parts,
    telemetryName: 'azure.ai.openai',
    origin,
    configuredBy: 'AZURE_OPENAI_API_KEY or azureOpenai({ apiKey })',
    catalogId: 'azure',
    ...((options.responses ?? hasResponses(apiVersion))
      ? {
          chat: chatByResponses(chat, responses, (deployment, request) =>
            takesToolsByResponses(modelOf(deployment), request),
          ),
          responses: openaiResponses(responses),
          ownsReasoning: ownsEncryptedReasoning,
        }
      : { chat }),
    embeddings: openaiEmbeddings({
      headers: apiKeyHeaders,
      path: path('embeddings'),
      maxInputs: 2048,
      takesTokens: true,
      rules: {},
      givesBase64: true,
      prefersBase64: true,
    }),
    images: { generations: openaiImages({ ...common, path: path('images/generations') }) },
    imageEdits: openaiImageEdits({ ...common, path: path('images/edits') }),
    transcription: openaiTranscriptions({
      ...common,
      path: path('audio/transcriptions'),
      abilities: (deployment) => transcriptionAbilities(modelOf(deployment)),
    }),
    priceMembers: OPENAI_PRICE_MEMBERS,
    media: {
      tokens: (media, deployment) => openaiMedia.tokens(media, modelOf(deployment)),
      contextTokens: (deployment) => openaiMedia.contextTokens(modelOf(deployment)),
    },
    errorFrom: errors.fromAnswer,
  }
}

const DATED = /^\d{4}-\d{2}-\d{2}(?:-preview)?$/

/** Returns base, prefix and version. Operators paste several kinds of addresses; dated ones of the portal contain their version. */
function addressOf(options: AzureOpenAIOptions): { origin: string; prefix: string; apiVersion: string } {
  const given = resourceAddress('azureOpenai', options, 'openai.azure.com')
  const [, address = given, version] = /^([^?#]*)\?api-version=([\w-]+)$/.exec(given) ?? []
  const { origin, prefix } = vendorAddress(address)
  const path = /\/(?:openai(?:\/(?:v1|deployments|responses)(?:\/.*)?)?|models(?:\/chat\/completions)?)$/.exec(prefix)
  // A proxy may have such a path.
  const isOwn = path?.[0] === '/models' && version === undefined && !origin.endsWith('.azure.com')
  // The address for models of all makers has its own version.
  const copied = path?.[0].startsWith('/models') === true ? undefined : version
  const apiVersion = options.apiVersion ?? copied ?? 'v1'
  if (apiVersion !== 'v1' && apiVersion !== 'preview' && !DATED.test(apiVersion))
    throw new TypeError(`azureOpenai: apiVersion must be v1, preview, or a date such as 2024-10-21: ${apiVersion}`)
  return { origin, prefix: isOwn ? prefix : prefix.slice(0, path?.index), apiVersion }
}

/** First version with Responses (Azure OpenAI, "API version lifecycle"). */
const FIRST_WITH_RESPONSES = '2025-03-01'

function hasResponses(apiVersion: string): boolean {
  return !DATED.test(apiVersion) || apiVersion >= FIRST_WITH_RESPONSES
}

/** Responses name the deployment in the body, even in dated versions. */
function responsesAddress(base: string, apiVersion: string): { readonly path: string; readonly query: string } {
  if (apiVersion === 'v1') return { path: `${base}/v1/responses`, query: '' }
  const path = apiVersion === 'preview' ? `${base}/v1/responses` : `${base}/responses`
  return { path, query: `?api-version=${apiVersion}` }
}

function operationPath(base: string, operation: string, apiVersion: string): OperationPath {
  if (apiVersion === 'v1') return `${base}/v1/${operation}`
  if (apiVersion === 'preview') return `${base}/v1/${operation}?api-version=preview`
  return (deployment) => `${base}/deployments/${encodeURIComponent(deployment)}/${operation}?api-version=${apiVersion}`
}
