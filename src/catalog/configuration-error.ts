/** Fault that a schema found, in zod's format. */
export interface ConfigurationIssue {
  readonly path: readonly PropertyKey[]
  readonly message: string
}

/**
 * Returns the error for invalid settings of an operator. Its message names each place: `prices[3].amount: …`.
 *
 * @param root Prefix of every path. Empty if the path itself begins with a name.
 */
export function configurationError(root: string, issues: readonly ConfigurationIssue[]): TypeError {
  return new TypeError(issues.map((issue) => `${formatPath(root, issue.path)}: ${issue.message}`).join('\n'))
}

function formatPath(root: string, path: readonly PropertyKey[]): string {
  let text = root
  for (const step of path) {
    if (typeof step === 'number') text += `[${step}]`
    else text += text === '' ? String(step) : `.${String(step)}`
  }
  return text
}
