import java.nio.file.Path;
import java.util.List;
import org.apache.sshd.common.keyprovider.FileKeyPairProvider;
import org.apache.sshd.scp.server.ScpCommandFactory;
import org.apache.sshd.server.SshServer;
import org.apache.sshd.server.config.keys.AuthorizedKeysAuthenticator;
import org.apache.sshd.sftp.server.SftpSubsystemFactory;

/** Apache MINA SSHD with SFTP and scp on loopback: PORT HOST_KEY AUTHORIZED_KEYS. */
public class MinaSshd {
    public static void main(String[] words) throws Exception {
        SshServer server = SshServer.setUpDefaultServer();
        if (words.length == 0) {
            System.out.println(server.getVersion());
            return;
        }
        server.setHost("127.0.0.1");
        server.setPort(Integer.parseInt(words[0]));
        server.setKeyPairProvider(new FileKeyPairProvider(Path.of(words[1])));
        server.setPublickeyAuthenticator(new AuthorizedKeysAuthenticator(Path.of(words[2])));
        server.setSubsystemFactories(List.of(new SftpSubsystemFactory()));
        server.setCommandFactory(new ScpCommandFactory());
        server.start();
        Thread.sleep(Long.MAX_VALUE);
    }
}
