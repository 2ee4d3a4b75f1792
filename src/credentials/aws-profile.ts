import { readFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import type { AwsIdentity } from './aws-presign.ts'

type Environment = Readonly<Record<string, string | undefined>>

/**
 * The keys of a profile in the file of AWS's tools (AWS, "Configuration and credential file settings").
 * @throws Error that names the profile and what to do, when there is no such file or profile, or it holds no keys.
 */
export async function awsProfile(profile: string, environment: Environment): Promise<AwsIdentity> {
  const path = environment['AWS_SHARED_CREDENTIALS_FILE'] || join(homedir(), '.aws', 'credentials')
  const what = `AWS_PROFILE: the profile ${JSON.stringify(profile)}`
  const text = await readFile(path, 'utf8').catch((cause: unknown) => {
    throw new Error(`${what} cannot be read: ${path} (${(cause as NodeJS.ErrnoException).code})`, { cause })
  })
  const values = sectionOf(text, profile)
  const accessKeyId = values?.get('aws_access_key_id')
  const secretAccessKey = values?.get('aws_secret_access_key')
  if (!accessKeyId || !secretAccessKey) {
    const export_ = `aws configure export-credentials --profile ${profile} --format env`
    throw new Error(
      `${what} has no keys in ${path}; for one with SSO, a role or a process pass credentials of @aws-sdk/credential-providers, or set the variables that "${export_}" prints`,
    )
  }
  return { accessKeyId, secretAccessKey, sessionToken: values?.get('aws_session_token') || undefined }
}

/** The settings below `[name]`; undefined: there is no such section. */
function sectionOf(text: string, name: string): ReadonlyMap<string, string> | undefined {
  let found: Map<string, string> | undefined
  let isInside = false
  for (const line of text.split(/\r?\n/)) {
    const section = /^\s*\[\s*([^\]]*?)\s*\]/.exec(line)?.[1]
    if (section !== undefined) {
      isInside = section === name
      if (isInside) found ??= new Map()
      continue
    }
    const setting = /^\s*([^#;=\s]+)\s*=\s*(.*?)\s*$/.exec(line)
    if (isInside && setting !== null) found?.set(setting[1]!.toLowerCase(), setting[2]!)
  }
  return found
}
