/**
 * Sources of tokens that expire, for `apiKey` of a vendor. None of them needs an additional package.
 *
 * @example
 * import { entraManagedIdentity } from 'signalbox/credentials'
 *
 * openaiCompatible({ id: 'azure', baseURL, apiKey: entraManagedIdentity(), models })
 */

export { type AwsBedrockOptions, type AwsSignatureOptions, awsBedrock, awsSignature } from './aws.ts'
export type { AwsIdentity } from './aws-signature.ts'
export {
  type EntraClientSecretOptions,
  type EntraManagedIdentityOptions,
  type EntraOptions,
  type EntraWorkloadIdentityOptions,
  entraClientSecret,
  entraManagedIdentity,
  entraWorkloadIdentity,
} from './entra.ts'
export {
  type GoogleDefaultOptions,
  type GoogleMetadataOptions,
  type GoogleOptions,
  type GoogleServiceAccountOptions,
  type GoogleWorkloadIdentityOptions,
  googleDefaultCredentials,
  googleMetadata,
  googleServiceAccount,
  googleWorkloadIdentity,
} from './google.ts'
