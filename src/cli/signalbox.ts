import { accountsCommand } from './accounts-command.ts'
import { auditCommand } from './audit-command.ts'
import { catalogCommand, modelsCommand } from './catalog-command.ts'
import { checkCommand } from './check-command.ts'
import { type ActionDefinition, type CommandDefinitions, type GroupDefinition, runCommandLine } from './command.ts'
import { CONFIG_OPTION, readConfiguration } from './configuration.ts'
import { holdsCommand } from './holds-command.ts'
import { initCommand } from './init-command.ts'
import { keysCommand } from './keys-command.ts'
import { serveCommand } from './serve-command.ts'
import { variableLines } from './settings.ts'
import type { Terminal } from './terminal.ts'
import { usageCommand } from './usage-command.ts'
import { webhooksCommand } from './webhooks-command.ts'

/** Runs one command line. A serving command returns once it listens. */
export async function runSignalbox(words: readonly string[], terminal: Terminal, version: string): Promise<void> {
  if (words.includes('--version') || words.includes('-v')) return terminal.print(version)
  const commands: CommandDefinitions = {
    init: initCommand,
    serve: serveCommand(version),
    check: checkCommand,
    models: configured(modelsCommand),
    catalog: group(catalogCommand),
    accounts: group(accountsCommand),
    holds: group(holdsCommand),
    keys: group(keysCommand),
    usage: group(usageCommand),
    webhooks: group(webhooksCommand),
    audit: group(auditCommand),
  }
  await runCommandLine(words, terminal, { commands, version, after: variableLines() })
}

function group({ summary, actions }: GroupDefinition): GroupDefinition {
  return {
    summary,
    actions: Object.fromEntries(Object.entries(actions).map(([name, action]) => [name, configured(action)])),
  }
}

/** Returns the action with the settings of the configuration file. */
function configured(action: ActionDefinition): ActionDefinition {
  return {
    ...action,
    options: { ...action.options, ...CONFIG_OPTION },
    async run(given, terminal) {
      // Other flags belong to the action itself: `--models` of keys is a scope.
      const { environment, documents, gateway, named } = await readConfiguration(
        given,
        terminal.environment,
        (name) => name === 'config',
      )
      const usageRetention = gateway.usage === 'off' ? undefined : gateway.usage?.retention
      try {
        await action.run(given, { ...terminal, environment, documents, usageRetention })
      } catch (error) {
        throw named(error)
      }
    },
  }
}
