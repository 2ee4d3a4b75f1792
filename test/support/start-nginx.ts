import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { folderOfProgram, freePort, startProcess } from './started-process.ts'

/** An nginx of our own, with its configuration and files in a temporary folder. */
export interface StartedNginx {
  /** `http://127.0.0.1:…` */
  readonly url: string
  /** Ends it and removes its folder. */
  stop(): Promise<void>
}

/** The folder of `nginx`; undefined when there is none. */
export function nginxFolder(): string | undefined {
  return folderOfProgram('nginx', ['/usr/sbin', '/usr/local/sbin'])
}

/** Starts nginx on a free port. @param http Returns the content of its `http` block for the port. */
export async function startNginx(http: (port: number) => string): Promise<StartedNginx> {
  const programs = nginxFolder()
  if (programs === undefined) throw new Error('there is no nginx on this machine')
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-nginx-'))
  // Workers of a master that is root are another user, and write the bodies of requests here.
  chmodSync(folder, 0o755)
  const port = await freePort()
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${name};`)
  const configuration = `daemon off;
pid nginx.pid;
error_log stderr notice;
worker_processes 2;
events { worker_connections 512; }
http {
access_log off;
${paths.join('\n')}
${http(port)}
}
`
  writeFileSync(join(folder, 'nginx.conf'), configuration)
  const args = ['-p', folder, '-c', join(folder, 'nginx.conf'), '-e', 'stderr']
  const server = await startProcess(join(programs, 'nginx'), args, 'start worker process', { cwd: folder })
  return {
    url: `http://127.0.0.1:${port}`,
    async stop() {
      await server.end('SIGTERM')
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
