import { type Preset, presets } from '../vendors/presets/presets.ts'
import { presetVariables } from './configured-vendors.ts'

/** Variable of a vendor. If `isSecret` is set, there is no flag for it. */
interface VendorVariable {
  readonly variable: string
  readonly flag?: string
  readonly isSecret: boolean
  readonly text: string
}

/** A base URL has a flag with the same words; a key has none. */
function ofVendor(variable: string, text: string, isSecret = false): VendorVariable {
  return { variable, text, isSecret, ...(isSecret ? {} : { flag: variable.toLowerCase().replaceAll('_', '-') }) }
}

const KEYS = 'one key, or several separated by commas, which take turns'

/** Variables of single vendors, and of their proxies. */
export const VENDOR_VARIABLES: readonly VendorVariable[] = [
  ...['OPENAI', 'ANTHROPIC', 'GEMINI', 'DASHSCOPE', 'VOYAGE', 'COHERE'].flatMap((prefix) => [
    ofVendor(`${prefix}_API_KEY`, KEYS, true),
    ofVendor(`${prefix}_BASE_URL`, 'another origin than the vendor’s own, such as http://127.0.0.1:9100'),
  ]),
  // `--no-proxy` would read as the opposite of `--proxy`.
  { ...ofVendor('HTTPS_PROXY', 'proxy for vendors with https'), flag: 'proxy' },
  { ...ofVendor('NO_PROXY', 'hosts that are called without the proxy, separated by commas'), flag: 'proxy-except' },
  ofVendor('AZURE_OPENAI_ENDPOINT', 'Azure OpenAI: the vendor azure-openai of your models'),
  ofVendor('AZURE_OPENAI_API_KEY', 'key of Azure OpenAI', true),
  ofVendor('AZURE_OPENAI_API_VERSION', 'dated version of Azure OpenAI’s API; without one its v1 paths'),
  ofVendor(
    'AZURE_OPENAI_DEPLOYMENTS',
    'models behind deployments of Azure OpenAI: my-deployment=gpt-6-luna,other=gpt-6-sol',
  ),
  ofVendor('ANTHROPIC_FOUNDRY_BASE_URL', 'Claude in Foundry: the vendor anthropic-foundry'),
  ofVendor('ANTHROPIC_FOUNDRY_API_KEY', 'key of Claude in Foundry', true),
  ofVendor(
    'GOOGLE_CLOUD_PROJECT',
    'Vertex AI by Google’s default credentials: the vendors vertex and anthropic-vertex',
  ),
  ofVendor('GOOGLE_CLOUD_LOCATION', 'location of Vertex AI: global, us, eu, europe-west4, …'),
  ofVendor('GOOGLE_APPLICATION_CREDENTIALS', 'path of Google’s credentials file'),
  ofVendor('GOOGLE_VERTEX_API_KEY', 'key for the vendor vertex, in place of credentials', true),
  ofVendor('GOOGLE_VERTEX_BASE_URL', 'another address of Vertex AI'),
  ofVendor('AWS_REGION', 'Amazon Bedrock: the vendors amazon-bedrock, and anthropic-bedrock for Claude’s Messages'),
  ofVendor('AWS_ENDPOINT_URL_BEDROCK_RUNTIME', 'another address of Amazon Bedrock'),
  ofVendor('AWS_BEARER_TOKEN_BEDROCK', 'key of Amazon Bedrock', true),
  ofVendor('AWS_ACCESS_KEY_ID', 'access key of AWS, in place of AWS_BEARER_TOKEN_BEDROCK', true),
  ofVendor('AWS_SECRET_ACCESS_KEY', 'secret of AWS_ACCESS_KEY_ID', true),
  ofVendor('AWS_PROFILE', 'profile of AWS’s credentials file, in place of keys in variables'),
  ...Object.values<Preset>(presets).flatMap((preset) => {
    const { keys, baseURL, account } = presetVariables(preset)
    return [
      ...keys.map((name) => ofVendor(name, `${preset.name}: the vendor ${preset.id} of your models`, true)),
      ...(account === undefined ? [] : [ofVendor(account, `the account at ${preset.name}`)]),
      ofVendor(baseURL, `another address of ${preset.name}`),
    ]
  }),
]
