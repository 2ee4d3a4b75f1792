import type { ModelDefinition } from '../../catalog/model.ts'
import { keyHeaders } from '../shared/bearer-headers.ts'
import { keyPool } from '../shared/key-pool.ts'
import { openaiChat } from '../shared/openai-chat.ts'
import type { OperationPath } from '../shared/openai-chat-dialect.ts'
import { openaiEmbeddings } from '../shared/openai-embeddings.ts'
import { type ErrorWords, errorReader } from '../shared/openai-error.ts'
import {
  DEFAULT_TOKEN_LIMIT_FIELD,
  OPENAI_RULES,
  type TokenLimitField,
  tokenLimitField,
} from '../shared/openai-field-rules.ts'
import { openaiImageEdits, openaiImages } from '../shared/openai-images.ts'
import { reasonsUnseen } from '../shared/reasons-unseen.ts'
import { type ResourceAddress, resourceAddress, vendorAddress } from '../shared/vendor-address.ts'
import { vendorConnection } from '../shared/vendor-connection.ts'
import type { ApiKeys, ConnectionOptions, UnlistedModelOptions, Vendor } from '../vendor.ts'

/** Options of {@link azureOpenai}. */
export interface AzureOpenAIOptions extends ResourceAddress, UnlistedModelOptions, ConnectionOptions {
  /** Id of the vendor, where there are several resources or regions; `azure-openai` by default. */
  readonly id?: string | undefined
  readonly displayName?: string | undefined
  /** One key or several; without one the vendor is not configured. */
  readonly apiKey?: ApiKeys
  /** Name of the resource: `my-resource` of `https://my-resource.openai.azure.com`. */
  readonly resource?: string | undefined
  /** Instead of `resource`: any address of it, as the portal or an SDK shows it. */
  readonly endpoint?: string | undefined
  /**
   * A dated version, such as `2024-10-21`: its paths name the deployment. `preview`: the previews of v1. Absent or `v1`: the
   * paths of v1, which need no version.
   */
  readonly apiVersion?: string | undefined
  /** OpenAI's id of the model behind a deployment, where the deployment has another name. */
  readonly deployments?: Readonly<Record<string, string>> | undefined
  /** The field in which a model takes its token bound, by OpenAI's id; wins over the built-in table. */
  readonly tokenLimitFields?: Readonly<Record<string, TokenLimitField>> | undefined
  /** The models it serves; `upstream` is the name of the deployment. */
  readonly models?: readonly Omit<ModelDefinition, 'vendor'>[] | undefined
}

const OPTIONS: readonly string[] = [
  'id',
  'displayName',
  'apiKey',
  'resource',
  'endpoint',
  'apiVersion',
  'deployments',
  'tokenLimitFields',
  'models',
  'passUnknownModels',
  'headers',
  'query',
  'tls',
  'proxy',
] satisfies (keyof AzureOpenAIOptions)[]

const apiKeyHeaders = keyHeaders('api-key')

/** Azure OpenAI, "Troubleshoot errors"; codes of the resource and its deployments are the operator's. */
const ERROR_WORDS: ErrorWords = {
  codes: {
    content_filter: 'caller',
    404: 'operator',
    DeploymentNotFound: 'operator',
    ResourceNotFound: 'operator',
    OperationNotSupported: 'operator',
    PermissionDenied: 'operator',
  },
  concerns: {
    404: 'model',
    DeploymentNotFound: 'model',
    OperationNotSupported: 'model',
    PermissionDenied: 'key',
  },
}

/**
 * Azure OpenAI: chat completions, embeddings, images and edits of images at a resource of the operator's. `upstream` of a model
 * is the name of its deployment.
 * @throws TypeError for an unknown option, a version that is none, and unless exactly one of `resource` and `endpoint` is given.
 */
export function azureOpenai(options: AzureOpenAIOptions): Vendor {
  for (const name of Object.keys(options))
    if (!OPTIONS.includes(name))
      throw new TypeError(`azureOpenai: unknown option ${JSON.stringify(name)}; it takes ${OPTIONS.join(', ')}`)
  const pool = keyPool(options.apiKey)
  const { apiKeys } = pool
  const id = options.id ?? 'azure-openai'
  const { origin, prefix, apiVersion } = addressOf(options)
  const errors = errorReader(ERROR_WORDS, apiKeys)
  const deployments = new Map(Object.entries(options.deployments ?? {}))
  const modelOf = (deployment: string): string => deployments.get(deployment) ?? deployment
  const path = (operation: string): OperationPath => operationPath(`${prefix}/openai`, operation, apiVersion)
  const common = { headers: apiKeyHeaders, streamFailure: errors.fromStream }
  return {
    id,
    displayName: options.displayName ?? 'Azure OpenAI',
    origin,
    ...vendorConnection(options),
    ...pool,
    configuredBy: 'AZURE_OPENAI_API_KEY or azureOpenai({ apiKey })',
    models: (options.models ?? []).map((model) => ({ ...model, vendor: id })),
    catalogId: 'azure',
    passUnknownModels: options.passUnknownModels ?? false,
    chat: openaiChat({
      ...common,
      path: path('chat/completions'),
      rulesFor: (deployment) =>
        OPENAI_RULES[tokenLimitField(modelOf(deployment), options.tokenLimitFields, DEFAULT_TOKEN_LIMIT_FIELD)],
      reasonsUnseen: (deployment, request) => reasonsUnseen(modelOf(deployment), request),
    }),
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
    errorFrom: errors.fromAnswer,
  }
}

const DATED = /^\d{4}-\d{2}-\d{2}(?:-preview)?$/

/** Base, prefix and version. People copy addresses of four kinds; the dated one of the portal carries its version. */
function addressOf(options: AzureOpenAIOptions): { origin: string; prefix: string; apiVersion: string } {
  const given = resourceAddress('azureOpenai', options, 'openai.azure.com')
  const copied = /^([^?#]*\/openai\/deployments\/[^?#]*)\?api-version=([\w-]+)$/.exec(given)
  const { origin, prefix } = vendorAddress(copied?.[1] ?? given)
  const apiVersion = options.apiVersion ?? copied?.[2] ?? 'v1'
  if (apiVersion !== 'v1' && apiVersion !== 'preview' && !DATED.test(apiVersion))
    throw new TypeError(`azureOpenai: apiVersion must be v1, preview, or a date such as 2024-10-21: ${apiVersion}`)
  return { origin, prefix: prefix.replace(/\/openai(?:\/(?:v1|deployments)(?:\/.*)?)?$/, ''), apiVersion }
}

function operationPath(base: string, operation: string, apiVersion: string): OperationPath {
  if (apiVersion === 'v1') return `${base}/v1/${operation}`
  if (apiVersion === 'preview') return `${base}/v1/${operation}?api-version=preview`
  return (deployment) => `${base}/deployments/${encodeURIComponent(deployment)}/${operation}?api-version=${apiVersion}`
}
