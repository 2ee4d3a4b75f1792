import { readFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import type { AwsIdentity } from './aws-presign.ts'

type Environment = Readonly<Record<string, string | undefined>>

/** File of AWS's tools, or the reason why it cannot be read. */
interface ProfileFile {
  readonly path: string
  readonly text: string
  readonly fault: NodeJS.ErrnoException | undefined
}

/**
 * Returns the keys of a profile in the files of AWS's tools, `credentials` before `config` (AWS, "Configuration and credential
 * file settings").
 * @throws Error that names the profile and a remedy if there is no such file or profile, or if it contains no keys.
 */
export async function awsProfile(profile: string, environment: Environment): Promise<AwsIdentity> {
  const { credentials, config, identity } = await keysOf(profile, environment)
  if (identity !== undefined) return identity
  const what = `AWS_PROFILE: the profile ${JSON.stringify(profile)}`
  if (credentials.fault !== undefined && config.fault !== undefined) {
    const cause = credentials.fault
    throw new Error(`${what} cannot be read: ${credentials.path} (${cause.code})`, { cause })
  }
  const export_ = `aws configure export-credentials --profile ${profile} --format env`
  throw new Error(
    `${what} has no keys in ${credentials.path} or ${config.path}; if it uses SSO, a role or a process, pass credentials of @aws-sdk/credential-providers, or set the variables that "${export_}" prints`,
  )
}

/** Returns the keys of the profile `default`, or `undefined` if it has none. */
export async function awsDefaultProfile(environment: Environment): Promise<AwsIdentity | undefined> {
  return (await keysOf('default', environment)).identity
}

async function keysOf(
  profile: string,
  environment: Environment,
): Promise<{
  readonly credentials: ProfileFile
  readonly config: ProfileFile
  readonly identity: AwsIdentity | undefined
}> {
  const folder = join(environment['HOME'] || environment['USERPROFILE'] || homedir(), '.aws')
  const [credentials, config] = await Promise.all([
    fileAt(environment['AWS_SHARED_CREDENTIALS_FILE'] || join(folder, 'credentials')),
    fileAt(environment['AWS_CONFIG_FILE'] || join(folder, 'config')),
  ])
  const inCredentials = sectionOf(credentials.text, profile)
  const named = sectionOf(config.text, `profile ${profile}`)
  const inConfig = named ?? (profile === 'default' ? sectionOf(config.text, profile) : undefined)
  const hasRole = assumesRole(new Map([...(inConfig ?? []), ...(inCredentials ?? [])]))
  const identity = hasRole ? undefined : (identityIn(inCredentials) ?? identityIn(inConfig))
  return { credentials, config, identity }
}

async function fileAt(path: string): Promise<ProfileFile> {
  try {
    return { path, text: await readFile(path, 'utf8'), fault: undefined }
  } catch (cause) {
    return { path, text: '', fault: cause as NodeJS.ErrnoException }
  }
}

function identityIn(values: ReadonlyMap<string, string> | undefined): AwsIdentity | undefined {
  const accessKeyId = values?.get('aws_access_key_id')
  const secretAccessKey = values?.get('aws_secret_access_key')
  if (!accessKeyId || !secretAccessKey) return undefined
  return { accessKeyId, secretAccessKey, sessionToken: values?.get('aws_session_token') || undefined }
}

/** Keys in a profile with a role belong to another identity, which assumes the role. */
function assumesRole(values: ReadonlyMap<string, string>): boolean {
  return values.has('role_arn') && (values.has('source_profile') || values.has('credential_source'))
}

/** A comment begins a line, or follows white space. */
const COMMENT = /(?:^|\s)[#;].*$/

/** Returns the settings below `[name]`, or `undefined` if there is no such section. */
function sectionOf(text: string, name: string): ReadonlyMap<string, string> | undefined {
  let found: Map<string, string> | undefined
  let isInside = false
  for (const whole of text.split(/\r?\n/)) {
    const line = whole.replace(COMMENT, '')
    const section = /^\s*\[\s*([^\]]*?)\s*\]/.exec(line)?.[1]
    if (section !== undefined) {
      isInside = section.replace(/^(\S+)\s+(["']?)(.+)\2$/, '$1 $3') === name
      if (isInside) found ??= new Map()
      continue
    }
    const setting = /^\s*([^=\s]+)\s*=\s*(.*?)\s*$/.exec(line)
    if (isInside && setting !== null) found?.set(setting[1]!.toLowerCase(), setting[2]!)
  }
  return found
}
