/** One fault that a schema found, as zod reports it. */
export interface ConfigurationIssue {
  readonly path: readonly PropertyKey[]
  readonly message: string
}

/**
 * The error for settings that an operator wrote wrongly. Its message names each place: `prices[3].amount: …`.
 *
 * @param root name put before every path; empty when the path itself begins with a name.
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
