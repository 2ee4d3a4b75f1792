import { SettingError } from './setting-error.ts'

/**
 * Loads a package that an operator installs only when a setting asks for it.
 * @param setting what asks for it, for the error.
 * @throws SettingError saying what to install.
 */
export async function loadOptionalPackage(name: string, setting: string): Promise<Record<string, unknown>> {
  try {
    // The name is no literal, so bundlers leave the import alone.
    return (await import(/* @vite-ignore */ name)) as Record<string, unknown>
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw cause
    throw new SettingError(`${setting}: needs the package ${name}; install it beside signalbox (npm install ${name})`)
  }
}
